"""Which jobs are out, how each ended, and which is next. Nothing here runs or remembers anything.

A board can be made again at any moment from the plans and from what Buildbot's tables tell of
their jobs: so nothing is lost with it.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torchyard_farm.scheduling.plans import FarmPlan
from torchyard_farm.scheduling.resources import Resources, resources_for


class JobStatus(NamedTuple):
    """What is known of a job that was sent: whether it is over, and ended well. Later ones win."""

    job: int
    over: bool
    good: bool


class PlanCounts(NamedTuple):
    """How far a plan is."""

    jobs: int
    good: int
    bad: int
    out: int

    @property
    def is_done(self) -> bool:
        return self.good == self.jobs


def may_submit(wants: Resources, out: Mapping[Resources, int], window: int) -> bool:
    """Whether one more job may be out that wants so much, when these of its kind are.

    Half of a window is at least all slots of its kind. When it is full, perhaps of jobs for which
    there is no room anywhere, one may still go unless as many that want no more are out as there
    are slots: then no slot is free, or one of these can take it.
    """
    easier = sum(count for other, count in out.items() if other.fits(wants))
    return sum(out.values()) < window or 2 * easier < window


class _PlanProgress:
    """One plan under way. Once a job has ended well, it stays so: there is its result."""

    def __init__(self, plan: FarmPlan, told: Iterable[JobStatus]) -> None:
        self.plan = plan
        self.users: list[list[int]] = [[] for _ in plan.jobs]
        for number, planned in enumerate(plan.jobs):
            for other in planned.after:
                self.users[other].append(number)
        self.good: set[int] = set()
        self.bad: set[int] = set()
        self.out: set[int] = set()
        self.out_of_kind: dict[str, Counter[Resources]] = defaultdict(Counter)
        for job, over, good in told:
            if over:
                self.end(job, good=good)
            elif job not in self.good:
                self.bad.discard(job)
                self.send(job)

    def send(self, job: int) -> None:
        if job not in self.out:
            self.out.add(job)
            self._count(job, 1)

    def end(self, job: int, *, good: bool) -> None:
        if job in self.out:
            self.out.remove(job)
            self._count(job, -1)
        if good:
            self.bad.discard(job)
            self.good.add(job)
        elif job not in self.good:
            self.bad.add(job)

    def can_begin(self, job: int) -> bool:
        fresh = job not in self.good and job not in self.bad and job not in self.out
        return fresh and self.good.issuperset(self.plan.jobs[job].after)

    def wants(self, job: int) -> Resources:
        needs = self.plan.task(job).needs
        return resources_for(needs.memory, needs.disk)

    def _count(self, job: int, change: int) -> None:
        self.out_of_kind[self.plan.jobs[job].kind][self.wants(job)] += change


class PlanTracker:
    """All plans under way; `windows` is how many jobs of each kind should be out at one time."""

    def __init__(self, windows: Mapping[str, int]) -> None:
        self._windows = windows
        self._courses: dict[str, _PlanProgress] = {}
        self._ready: dict[tuple[str, Resources], list[tuple[int, str, int]]] = {}

    def __contains__(self, plan: object) -> bool:
        return plan in self._courses

    def add(self, plan: FarmPlan, told: Iterable[JobStatus] = ()) -> None:
        """Begin a plan, or go on with one of which something is known already."""
        course = self._courses[plan.id] = _PlanProgress(plan, told)
        self._offer(course, range(len(plan.jobs)))

    def drop(self, plan: str) -> None:
        """Forget a plan; what it had out gives its places in the windows back."""
        self._courses.pop(plan, None)

    def end(self, plan: str, job: int, *, good: bool) -> None:
        """A job ended; one that had failed and was tried again lets its plan go on."""
        course = self._courses.get(plan)
        if course is not None:
            course.end(job, good=good)
            if good:
                self._offer(course, course.users[job])

    def next(self) -> tuple[FarmPlan, int] | None:
        """Take the most urgent job that may be sent; it is out from now on."""
        queues = [
            ready
            for (kind, wants), ready in self._ready.items()
            if ready and may_submit(wants, self._out(kind), self._windows.get(kind, 0))
        ]
        while queues:
            queue = min(queues, key=lambda ready: ready[0])
            _, name, job = heapq.heappop(queue)
            course = self._courses.get(name)
            if course is not None and course.can_begin(job):
                course.send(job)
                return course.plan, job
            queues = [ready for ready in queues if ready]
        return None

    def is_over(self, plan: str) -> bool:
        """Whether nothing is left to do.

        A plan with failures waits for somebody who tries them again; a trial does not, as it has
        found out what it is for.
        """
        tally = self.tally(plan)
        tried = bool(self._courses[plan].plan.trial) and tally.good + tally.bad == tally.jobs
        return tally.is_done or tried

    def tally(self, plan: str) -> PlanCounts:
        course = self._courses[plan]
        return PlanCounts(len(course.plan.jobs), len(course.good), len(course.bad), len(course.out))

    def failed(self, plan: str) -> list[int]:
        return sorted(self._courses[plan].bad)

    def _out(self, kind: str) -> Mapping[Resources, int]:
        """How many jobs of a kind are out, by what they want."""
        found: Counter[Resources] = Counter()
        for course in self._courses.values():
            found.update(course.out_of_kind[kind])
        return found

    def _offer(self, course: _PlanProgress, jobs: Iterable[int]) -> None:
        for job in filter(course.can_begin, jobs):
            planned = course.plan.jobs[job]
            entry = (-planned.urgency, course.plan.id, job)
            heapq.heappush(self._ready.setdefault((planned.kind, course.wants(job)), []), entry)
