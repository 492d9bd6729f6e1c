"""Streaks of failures of a job, over all plans and versions."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torchyard_farm.web.progress import PlanProgress


class PastBuild(NamedTuple):
    """A finished job of this plan or an earlier one: its history page, and its stage."""

    page: int
    stage: str
    good: bool
    ended: int


class Streak(NamedTuple):
    """Consecutive failures: the time of the first, and their number."""

    since: int
    times: int


class History(NamedTuple):
    """The history page of each task, and the streaks of failing tasks."""

    pages: Mapping[int, int]
    streaks: Mapping[int, Streak]


def task_history(
    progress: PlanProgress, pages: Mapping[int, int], past: Iterable[PastBuild]
) -> History:
    """Return the history of a plan's tasks; `past` has the newest builds first."""
    found: dict[tuple[int, str], list[tuple[bool, int]]] = {}
    for page, stage, good, ended in past:
        found.setdefault((page, stage), []).append((good, ended))
    stages = {task: progress.plan.tasks[task].stage.value for task in progress.trouble}
    streaks = {
        task: streak
        for task, stage in stages.items()
        if task in pages and (streak := failure_streak(found.get((pages[task], stage), ())))
    }
    return History(pages, streaks)


def failure_streak(past: Iterable[tuple[bool, int]]) -> Streak | None:
    """Return the failures since the last success, or None if the newest build succeeded.

    `past` has the success and end of each build, newest first.
    """
    streak = None
    for good, ended in past:
        if good:
            break
        streak = Streak(ended, streak.times + 1 if streak else 1)
    return streak
