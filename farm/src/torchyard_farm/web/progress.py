"""The progress of a plan: the state of each job, and the estimated remaining time."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple

from torchyard.model.recipe import Stage
from torchyard_farm.scheduling.plans import FarmPlan


class TaskState(StrEnum):
    """The state of a task, the most important first."""

    FAILED = "failed"
    GIVEN_UP = "given up"
    """Too many attempts failed."""
    QUARANTINED = "quarantined"
    """Too many machines were lost with it."""
    CANCELLED = "cancelled"
    BLOCKED = "blocked"
    """An input has failed."""
    RUNNING = "running"
    READY = "ready"
    """It only waits for a machine."""
    WAITING = "waiting"
    """An input is missing."""
    DONE = "done"
    CACHED = "cached"
    """Not submitted: it, or everything built from it, is in the store."""


TROUBLE = (TaskState.FAILED, TaskState.GIVEN_UP, TaskState.QUARANTINED)
BAD = (*TROUBLE, TaskState.CANCELLED)
GOOD = (TaskState.DONE, TaskState.CACHED)

Outcome = Literal["good", "bad", "given up", "quarantined", "cancelled"]
_STATES: Mapping[Outcome, TaskState] = {
    "good": TaskState.DONE,
    "bad": TaskState.FAILED,
    "given up": TaskState.GIVEN_UP,
    "quarantined": TaskState.QUARANTINED,
    "cancelled": TaskState.CANCELLED,
}


class JobAttempt(NamedTuple):
    """An attempt of a submitted job, on a worker or on none yet; later ones win.

    `outcome` is None while unknown; `builder` and `build` are the numbers of its page.
    Times are in seconds since 1970.
    """

    job: int
    outcome: Outcome | None
    builder: int | None = None
    build: int | None = None
    began: int | None = None
    ended: int | None = None
    worker: str = ""
    text: str = ""


class PlanProgress(NamedTuple):
    """The state of each task of a plan, and the last attempt of each submitted job."""

    plan: FarmPlan
    states: Sequence[TaskState]
    attempts: Mapping[int, JobAttempt]
    is_over: bool

    @property
    def trouble(self) -> list[int]:
        """The tasks that need attention, in order of failure."""
        bad = [task for task, state in enumerate(self.states) if state in TROUBLE]
        return sorted(bad, key=lambda task: self.attempts[task].ended or 0)

    @property
    def counts(self) -> Counter[TaskState]:
        return Counter(self.states)


def plan_progress(
    plan: FarmPlan, submitted: Iterable[JobAttempt], *, is_over: bool
) -> PlanProgress:
    """Combine a plan with the attempts of its jobs; keys are tasks.

    A plan that is over and not finished was cancelled.
    """
    attempts: dict[int, JobAttempt] = {}
    for attempt in submitted:
        task = plan.jobs[attempt.job].task
        last = attempts.get(task)
        if last is not None and last.outcome == "good":
            continue  # a success is final
        attempts[task] = attempt
    states = [TaskState.CACHED] * len(plan.tasks)
    for planned in plan.jobs:  # each comes after its inputs
        before = [states[plan.jobs[other].task] for other in planned.after]
        states[planned.task] = _state(attempts.get(planned.task), before, is_over=is_over)
    return PlanProgress(plan, states, attempts, is_over)


def _state(last: JobAttempt | None, before: Sequence[TaskState], *, is_over: bool) -> TaskState:
    if last is not None:
        if last.outcome is not None:
            return _STATES[last.outcome]
        return (
            TaskState.RUNNING if last.began is not None and last.ended is None else TaskState.READY
        )
    if is_over:
        return TaskState.CANCELLED
    if any(state in BAD or state is TaskState.BLOCKED for state in before):
        return TaskState.BLOCKED
    return TaskState.READY if all(state in GOOD for state in before) else TaskState.WAITING


def seconds_left(progress: PlanProgress, now: int) -> int | None:
    """Return the estimated remaining seconds, or None if there is no estimate.

    A job is assumed to take as long as those of its stage did in this plan, with as many machines
    as are busy now, but no less than the longest path through the remaining jobs.
    """
    plan, states = progress.plan, progress.states
    lasted = _usual(progress)
    ways: dict[int, float] = {}
    work, busy = 0.0, 0
    for planned in plan.jobs:
        state = states[planned.task]
        if state not in (TaskState.RUNNING, TaskState.READY, TaskState.WAITING):
            continue
        usual = lasted.get(plan.tasks[planned.task].stage)
        if usual is None:
            return None
        if state is TaskState.RUNNING:
            busy += 1
            usual = max(0.0, usual - (now - (progress.attempts[planned.task].began or now)))
        work += usual
        before = (ways.get(plan.jobs[other].task, 0.0) for other in planned.after)
        ways[planned.task] = usual + max(before, default=0.0)
    if not busy:
        return None
    return round(max(work / busy, *ways.values(), 0.0))


def _usual(progress: PlanProgress) -> dict[Stage, float]:
    """Return the average seconds of a job of each stage in this plan."""
    times: dict[Stage, list[int]] = {}
    for task, last in progress.attempts.items():
        if last.outcome == "good" and last.began is not None and last.ended is not None:
            times.setdefault(progress.plan.tasks[task].stage, []).append(last.ended - last.began)
    return {stage: sum(seconds) / len(seconds) for stage, seconds in times.items()}
