"""How long something has been failing: over all plans, of whatever version."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torchyard_farm.web.progress import PlanProgress


class PastBuild(NamedTuple):
    """A job that ended, in this plan or an earlier one: the page of its cell, and its stage."""

    page: int
    stage: str
    good: bool
    ended: int


class Streak(NamedTuple):
    """Failures in a row: when the first was, and how many there are."""

    since: int
    times: int


class History(NamedTuple):
    """For each task the page of its cell, and for those in trouble how long they have been so."""

    pages: Mapping[int, int]
    streaks: Mapping[int, Streak]


def task_history(
    progress: PlanProgress, pages: Mapping[int, int], past: Iterable[PastBuild]
) -> History:
    """Look back from the newest of the past, which comes first, to when each was last well."""
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
    """The failures since the last success, of whether something ended well, and when.

    The newest comes first. None if that ended well.
    """
    streak = None
    for good, ended in past:
        if good:
            break
        streak = Streak(ended, streak.times + 1 if streak else 1)
    return streak
