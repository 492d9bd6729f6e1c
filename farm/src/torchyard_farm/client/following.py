"""The progress of a plan, from polls of its master, without requests of its own."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import dropwhile
from typing import NamedTuple

from torchyard.model.recipe import Stage
from torchyard.terminal.untrusted import printable
from torchyard_farm.client.web_api import GOOD, RunningBuild, SubmittedJob
from torchyard_farm.scheduling.plans import FarmPlan

_MARGIN = 30
"""Seconds by which the end of a job may be recorded later than that of others."""


class JobStarted(NamedTuple):
    """A job runs; `lost` is the machine that did not finish it before."""

    job: int
    machine: str
    attempt: int
    lost: str


class JobEnded(NamedTuple):
    """A job ended."""

    job: int
    submitted: SubmittedJob


class PlanFollower:
    """One open plan. Each change is returned once, however often it is polled."""

    def __init__(self, plan: FarmPlan) -> None:
        self._plan = plan
        self._good: dict[int, bool] = {}
        self._going: dict[int, RunningBuild] = {}
        self._running: set[int] = set()
        self._seen: set[int] = set()
        self._latest = 0

    def since(self, running: Mapping[int, RunningBuild], *, is_open: bool) -> int:
        """Return the time since which jobs may have ended unseen, if these jobs run.

        When nothing runs, or the plan is over, all ends are read: one may have been recorded much
        later, such as after an outage of the database, and would be missed.
        """
        return max(0, self._latest - _MARGIN) if running and is_open else 0

    def take(
        self, running: Mapping[int, RunningBuild], ended: Iterable[SubmittedJob]
    ) -> Iterator[JobStarted | JobEnded]:
        """Return the changes, given running and ended jobs, which must be polled in this order."""
        new = [done for done in ended if done.bsid not in self._seen]
        for done in new:
            self._seen.add(done.bsid)
            self._latest = max(self._latest, done.complete_at or 0)
            if not self._good.get(done.job):
                self._good[done.job] = done.results in GOOD
                yield JobEnded(done.job, done)
        just_ended = {done.job for done in new}
        for job, build in running.items():
            if build.machine and job not in just_ended and not self._good.get(job):
                yield from self._begin(job, build)
        self._running = running.keys() - just_ended

    def _begin(self, job: int, build: RunningBuild) -> Iterator[JobStarted]:
        """Yield that a job has started, unless its new build only found it running."""
        before, self._going[job] = self._going.get(job), build
        if before is not None and before.build == build.build:
            return
        failed = self._good.pop(job, None) is not None  # and is rebuilt
        if before is None or failed or before[1:] != build[1:]:
            lost = before.machine if before and not failed else ""
            yield JobStarted(job, build.machine, build.attempt, lost)

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens without a user's action."""
        return not self._running and not any(map(self._may_go_on, range(len(self._plan.jobs))))

    def _may_go_on(self, job: int) -> bool:
        return job not in self._good and all(map(self._good.get, self._plan.jobs[job].after))

    @property
    def left(self) -> list[int]:
        """The jobs that have not ended."""
        return [job for job in range(len(self._plan.jobs)) if job not in self._good]


def cached_results(plan: FarmPlan) -> tuple[int, list[str]]:
    """Return how many of the wanted jobs had results, and the packages among them."""
    made = {planned.task for planned in plan.jobs}
    used = {name for task in plan.tasks for name in task.inputs}
    tasks = [
        task
        for number, task in enumerate(plan.tasks)
        if number not in made and (task.stage is Stage.PACKAGE or task.fingerprint not in used)
    ]
    return len(tasks), [task.fingerprint for task in tasks if task.stage is Stage.PACKAGE]


def error_text(log: Iterable[str]) -> str:
    """Return a job's error message from its log; events are in the other stream."""
    lines = (printable(line[1:].expandtabs()) for line in log if line.startswith("e"))
    return "\n".join(dropwhile(lambda line: not line.startswith("error: "), lines))
