"""How long something has been failing: over all plans, of whatever version."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torchyard_farm.progress import Progress


class Past(NamedTuple):
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


def history_of(progress: Progress, pages: Mapping[int, int], past: Iterable[Past]) -> History:
    """Look back from the newest of the past, which comes first, to when each was last well."""
    found: dict[tuple[int, str], Streak] = {}
    well: set[tuple[int, str]] = set()
    for page, stage, good, ended in past:
        key = (page, stage)
        if good:
            well.add(key)
        elif key not in well:
            times = found[key].times if key in found else 0
            found[key] = Streak(ended, times + 1)
    stages = {task: progress.plan.tasks[task].stage.value for task in progress.trouble}
    streaks = {
        task: found[pages[task], stage]
        for task, stage in stages.items()
        if task in pages and (pages[task], stage) in found
    }
    return History(pages, streaks)
