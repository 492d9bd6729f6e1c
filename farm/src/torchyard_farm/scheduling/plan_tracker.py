"""Submitted jobs, their outcomes, and the next job, without I/O or saved state.

A tracker can be rebuilt at any moment from the plans and from the status of their jobs in
Buildbot's tables.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torchyard_farm.scheduling.plans import FarmPlan
from torchyard_farm.scheduling.resources import Resources, resources_for


class JobStatus(NamedTuple):
    """The status of a submitted job: whether it is over and succeeded; later ones win."""

    job: int
    over: bool
    good: bool


class PlanCounts(NamedTuple):
    """The numbers of a plan's jobs: all, succeeded, failed, and submitted."""

    jobs: int
    good: int
    bad: int
    out: int

    @property
    def is_done(self) -> bool:
        return self.good == self.jobs


def may_submit(needs: Resources, submitted: Mapping[Resources, int], window: int) -> bool:
    """Return whether one more job may be submitted, given those of its class that are.

    Half of a window covers all slots of the class. When it is full, perhaps with jobs that fit
    nowhere now, another job may still be submitted, unless as many jobs as there are slots need no
    more than it: then no slot is free, or one of these can use it.
    """
    easier = sum(count for other, count in submitted.items() if other.fits(needs))
    return sum(submitted.values()) < window or 2 * easier < window


class _PlanState:
    """An open plan. The success of a job is final, as its result is in the store."""

    def __init__(self, plan: FarmPlan, statuses: Iterable[JobStatus]) -> None:
        self.plan = plan
        self.users: list[list[int]] = [[] for _ in plan.jobs]
        for number, planned in enumerate(plan.jobs):
            for other in planned.after:
                self.users[other].append(number)
        self.good: set[int] = set()
        self.bad: set[int] = set()
        self.out: set[int] = set()
        self.out_by_class: dict[str, Counter[Resources]] = defaultdict(Counter)
        for job, over, good in statuses:
            if over:
                self.end(job, good=good)
            elif job not in self.good:
                self.bad.discard(job)
                self.submit(job)

    def submit(self, job: int) -> None:
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

    def can_submit(self, job: int) -> bool:
        fresh = job not in self.good and job not in self.bad and job not in self.out
        return fresh and self.good.issuperset(self.plan.jobs[job].after)

    def needs(self, job: int) -> Resources:
        needs = self.plan.task(job).needs
        return resources_for(needs.memory, needs.disk)

    def _count(self, job: int, change: int) -> None:
        self.out_by_class[self.plan.jobs[job].kind][self.needs(job)] += change


class PlanTracker:
    """All open plans; `windows` is the number of jobs of each class to submit at a time."""

    def __init__(self, windows: Mapping[str, int]) -> None:
        self._windows = windows
        self._plans: dict[str, _PlanState] = {}
        self._ready: dict[tuple[str, Resources], list[tuple[int, str, int]]] = {}

    def __contains__(self, plan: object) -> bool:
        return plan in self._plans

    def add(self, plan: FarmPlan, statuses: Iterable[JobStatus] = ()) -> None:
        """Add a plan whose jobs may have been submitted before."""
        state = self._plans[plan.id] = _PlanState(plan, statuses)
        self._enqueue(state, range(len(plan.jobs)))

    def drop(self, plan: str) -> None:
        """Forget a plan; its submitted jobs no longer fill the windows."""
        self._plans.pop(plan, None)

    def end(self, plan: str, job: int, *, good: bool) -> None:
        """Process the end of a job; a failed job may succeed when it is rebuilt."""
        state = self._plans.get(plan)
        if state is not None:
            state.end(job, good=good)
            if good:
                self._enqueue(state, state.users[job])

    def next(self) -> tuple[FarmPlan, int] | None:
        """Return the most urgent job that may be submitted; it counts as submitted from now on."""
        queues = [
            ready
            for (kind, needs), ready in self._ready.items()
            if ready and may_submit(needs, self._submitted(kind), self._windows.get(kind, 0))
        ]
        while queues:
            queue = min(queues, key=lambda ready: ready[0])
            _, name, job = heapq.heappop(queue)
            state = self._plans.get(name)
            if state is not None and state.can_submit(job):
                state.submit(job)
                return state.plan, job
            queues = [ready for ready in queues if ready]
        return None

    def is_over(self, plan: str) -> bool:
        """Return whether nothing is left to do.

        A plan with failures stays open until they are rebuilt. A trial does not: its failures are
        its result.
        """
        counts = self.counts(plan)
        tried = bool(self._plans[plan].plan.trial) and counts.good + counts.bad == counts.jobs
        return counts.is_done or tried

    def counts(self, plan: str) -> PlanCounts:
        state = self._plans[plan]
        return PlanCounts(len(state.plan.jobs), len(state.good), len(state.bad), len(state.out))

    def failed(self, plan: str) -> list[int]:
        return sorted(self._plans[plan].bad)

    def _submitted(self, kind: str) -> Mapping[Resources, int]:
        """Return how many jobs of a class are submitted, by their needs."""
        found: Counter[Resources] = Counter()
        for state in self._plans.values():
            found.update(state.out_by_class[kind])
        return found

    def _enqueue(self, state: _PlanState, jobs: Iterable[int]) -> None:
        for job in filter(state.can_submit, jobs):
            planned = state.plan.jobs[job]
            entry = (-planned.urgency, state.plan.id, job)
            heapq.heappush(self._ready.setdefault((planned.kind, state.needs(job)), []), entry)
