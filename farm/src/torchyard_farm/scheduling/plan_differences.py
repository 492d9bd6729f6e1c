"""What several masters of one farm tell each other, through the database that they share.

Each has all plans in its own directory. A plan never changes, and only two things can happen to it,
one after the other: somebody wants it to end, and it is over. So what one master knows and another
does not is simply copied, in any order, and as often as one likes. A plan that is forgotten is over
by its mark, and not there.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple

from torchyard_farm.scheduling.plans import Plans

_OVERLAP = 100
"""How many of the newest rows are looked at again: one with a smaller number may come later."""


class PlanMark(StrEnum):
    """What happened to a plan."""

    CANCELLED = "cancelled"
    ENDED = "ended"


class PlanDifferences(NamedTuple):
    """What one master has to do, so that it and the database know the same."""

    send: list[str]
    """Plans that only this master has."""
    fetch: list[str]
    """Plans that only the database has."""
    cancel: list[str]
    """Plans that somebody wanted to end, at another master."""
    end: list[str]
    """Plans that are over at another master."""
    forget: list[str]
    """Plans that the database has forgotten."""
    mark: dict[str, PlanMark]
    """What has happened here, and the database does not know."""


def compare_plans(
    here: Plans, names: Collection[str], marks: Mapping[str, PlanMark]
) -> PlanDifferences:
    """Compare the plans of this master with those in the database."""
    open_, ended, cancelled = set(here.open()), set(here.ended()), set(here.cancelled())
    known = open_ | ended
    over = {name for name, mark in marks.items() if mark is PlanMark.ENDED}
    unwanted = {name for name, mark in marks.items() if mark is PlanMark.CANCELLED}
    news = dict.fromkeys((cancelled & open_) - marks.keys(), PlanMark.CANCELLED)
    news |= dict.fromkeys(ended - over, PlanMark.ENDED)
    forgotten = over.difference(names)
    return PlanDifferences(
        send=sorted(known - set(names) - forgotten),
        fetch=sorted(set(names) - known),
        cancel=sorted((unwanted & open_) - cancelled),
        end=sorted((over & open_) - forgotten),
        forget=sorted(known & forgotten),
        mark=news,
    )


class ClosedRows:
    """Finds out which rows of a table were closed since the last look, whoever closed them."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._closed: set[int] | None = None
        self._newest = 0

    @property
    def since(self) -> int:
        """Rows with a greater number are looked at, and all that are open."""
        return self._newest - _OVERLAP

    def look(self, rows: Mapping[int, bool]) -> list[int]:
        """Take the rows, each with whether it is closed; return those that were not before."""
        closed = {row for row, is_closed in rows.items() if is_closed}
        news = set() if self._closed is None else closed - self._closed
        gone = self._open - rows.keys()
        self._open = set(rows) - closed
        self._closed = closed
        self._newest = max(rows, default=self._newest)
        return sorted(news | gone)
