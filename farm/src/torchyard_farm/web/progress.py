"""How far a plan is: the state of each job, and what can be said of the rest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple

from torchyard.model.recipe import Stage
from torchyard_farm.scheduling.plans import FarmPlan


class TaskState(StrEnum):
    """What became of a task, in the order in which people should hear of it."""

    FAILED = "failed"
    GIVEN_UP = "given up"
    """It was tried too often in vain."""
    QUARANTINED = "quarantined"
    """It took down too many machines."""
    CANCELLED = "cancelled"
    BLOCKED = "blocked"
    """What it needs has failed."""
    RUNNING = "running"
    READY = "ready"
    """It only waits for a machine."""
    WAITING = "waiting"
    """What it needs is not there yet."""
    DONE = "done"
    CACHED = "cached"
    """Not sent: the store has it, or has all that is made of it."""


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
    """A try of a job that was sent, by a worker or by none yet; later ones win.

    `outcome` is None as long as it is not known, and `builder` and `build` are where to look.
    Moments are in seconds since 1970.
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
    """The state of each task of a plan, and the last try of each job that was sent."""

    plan: FarmPlan
    states: Sequence[TaskState]
    tries: Mapping[int, JobAttempt]
    is_over: bool

    @property
    def trouble(self) -> list[int]:
        """The tasks that somebody has to look at; what failed first comes first."""
        bad = [task for task, state in enumerate(self.states) if state in TROUBLE]
        return sorted(bad, key=lambda task: self.tries[task].ended or 0)

    @property
    def counts(self) -> Counter[TaskState]:
        return Counter(self.states)


def plan_progress(plan: FarmPlan, sent: Iterable[JobAttempt], *, is_over: bool) -> PlanProgress:
    """Put together what the plan says and what was heard of its jobs; keys are tasks.

    A plan that is over and was not finished was cancelled.
    """
    tries: dict[int, JobAttempt] = {}
    for one in sent:
        task = plan.jobs[one.job].task
        last = tries.get(task)
        if last is not None and last.outcome == "good":
            continue  # once a job has ended well, it stays so
        tries[task] = one
    states = [TaskState.CACHED] * len(plan.tasks)
    for planned in plan.jobs:  # each comes behind all that it needs
        before = [states[plan.jobs[other].task] for other in planned.after]
        states[planned.task] = _state(tries.get(planned.task), before, is_over=is_over)
    return PlanProgress(plan, states, tries, is_over)


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
    """How long the rest takes at the pace so far; None if nobody can know.

    A job is taken to last as long as those of its stage did in this plan; with the machines that
    are at work now, but no less than the longest way through what is left.
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
            usual = max(0.0, usual - (now - (progress.tries[planned.task].began or now)))
        work += usual
        before = (ways.get(plan.jobs[other].task, 0.0) for other in planned.after)
        ways[planned.task] = usual + max(before, default=0.0)
    if not busy:
        return None
    return round(max(work / busy, *ways.values(), 0.0))


def _usual(progress: PlanProgress) -> dict[Stage, float]:
    """Seconds that a job of each stage took, on average, in this plan."""
    times: dict[Stage, list[int]] = {}
    for task, one in progress.tries.items():
        if one.outcome == "good" and one.began is not None and one.ended is not None:
            times.setdefault(progress.plan.tasks[task].stage, []).append(one.ended - one.began)
    return {stage: sum(some) / len(some) for stage, some in times.items()}
