"""The differences between a master's plans and those in the masters' shared database.

Each master has all plans in its own directory. A plan never changes, and only two things happen to
it, in this order: it is cancelled, and it is over. So anything that only one side has is
copied, in any order and any number of times. A forgotten plan is marked as over without a text.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple

from torchyard_farm.scheduling.plans import Plans

_OVERLAP = 100
"""The number of newest rows to read again: a row with a smaller number may be committed later."""


class PlanMark(StrEnum):
    """A change of a plan."""

    CANCELLED = "cancelled"
    ENDED = "ended"


class PlanDifferences(NamedTuple):
    """The actions of a master to agree with the database."""

    send: list[str]
    """Plans that only this master has."""
    fetch: list[str]
    """Plans that only the database has."""
    cancel: list[str]
    """Plans that were cancelled at another master."""
    end: list[str]
    """Plans that are over at another master."""
    forget: list[str]
    """Plans that the database has forgotten."""
    mark: dict[str, PlanMark]
    """Local changes that are not in the database yet."""


def compare_plans(
    here: Plans, names: Collection[str], marks: Mapping[str, PlanMark]
) -> PlanDifferences:
    """Compare the plans of this master with the database."""
    open_, ended, cancelled = set(here.open()), set(here.ended()), set(here.cancelled())
    local = open_ | ended
    over = {name for name, mark in marks.items() if mark is PlanMark.ENDED}
    unwanted = {name for name, mark in marks.items() if mark is PlanMark.CANCELLED}
    news = dict.fromkeys((cancelled & open_) - marks.keys(), PlanMark.CANCELLED)
    news |= dict.fromkeys(ended - over, PlanMark.ENDED)
    forgotten = over.difference(names)
    return PlanDifferences(
        send=sorted(local - set(names) - forgotten),
        fetch=sorted(set(names) - local),
        cancel=sorted((unwanted & open_) - cancelled),
        end=sorted((over & open_) - forgotten),
        forget=sorted(local & forgotten),
        mark=news,
    )


class ClosedRows:
    """Finds the rows of a table that were closed since the last update, by any master."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._closed: set[int] | None = None
        self._newest = 0

    @property
    def since(self) -> int:
        """The number after which rows must be read, besides all open ones."""
        return self._newest - _OVERLAP

    def update(self, rows: Mapping[int, bool]) -> list[int]:
        """Process rows, each with whether it is closed; return the newly closed ones."""
        closed = {row for row, is_closed in rows.items() if is_closed}
        news = set() if self._closed is None else closed - self._closed
        gone = self._open - rows.keys()
        self._open = set(rows) - closed
        self._closed = closed
        self._newest = max(rows, default=self._newest)
        return sorted(news | gone)
