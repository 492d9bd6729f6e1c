"""The planned packages in a channel."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from torchyard.errors import PublishError
from torchyard.model.identifier import ANY_PYTHON
from torchyard.model.quantity import show_count
from torchyard.model.values import Reported
from torchyard.publish.coverage import Presence
from torchyard.terminal.tables import Lines, assembled, centred, styled, table, word

_MARKS = {
    Presence.THERE: ("●", "green"),
    Presence.MISSING: ("○", "bold red"),
    Presence.YANKED: ("y", "yellow"),
    Presence.UNPLANNED: ("+", "cyan"),
}
_NEVER = ("·", "dim")
_VERSIONS = 5
"""The most versions to name if the requested one is missing."""

_Grid = dict[str, dict[str, Presence]]
"""Rows `cu130-mkl`, columns of Pythons or of kinds of packages."""


class CoverageReport(Reported, kw_only=True):
    """`torchyard channel coverage --json`: cells of a plan, and whether a channel has them."""

    version: Literal[1] = 1
    channel: str
    project: str
    project_version: str
    subset: str | None
    cells: Mapping[str, Presence]
    missing: list[str]
    versions: Sequence[str]

    def those(self, presence: Presence) -> list[str]:
        """Return the cells that are present, missing, yanked or unplanned."""
        return [cell for cell, found in self.cells.items() if found is presence]


def channel_coverage_error(report: CoverageReport, *, fail_on_missing: bool) -> PublishError | None:
    if not fail_on_missing or not report.missing:
        return None
    msg = f"the channel lacks {show_count(len(report.missing), 'package')} of the plan"
    first = report.missing[0].partition("/")[2]
    return PublishError(msg, hint=f"build and publish them; the first is {first}")


def channel_coverage_text(report: CoverageReport) -> Lines:
    """Show a line for complete and for completely missing parts, and a grid for the rest."""
    counts = {presence: len(report.those(presence)) for presence in Presence}
    of = f", subset {report.subset}" if report.subset else ""
    title = f"{report.project} {report.project_version}"
    yield assembled((title, "bold"), f"{of} in ", report.channel)
    summary = ", ".join(f"{count:,} {presence}" for presence, count in counts.items() if count)
    yield styled(summary, "bold")
    if not counts[Presence.THERE] and report.versions:
        yield styled(f"the channel has {', '.join(report.versions[:_VERSIONS])}")
    broken = False
    for name, grid in _grids(report.cells).items():
        found = [presence for row in grid.values() for presence in row.values()]
        same = set(found)
        yield ""
        if same <= {Presence.THERE} or same <= {Presence.MISSING}:
            summary = f"{len(found):,} of {show_count(len(found), 'package')} {found[0]}"
            yield assembled((name, "bold"), ": ", (summary, _MARKS[found[0]][1]))
        else:
            yield styled(name, "bold")
            yield from _table(grid)
            broken = True
    if broken:
        yield ""
        yield from _legend()


def _grids(cells: Mapping[str, Presence]) -> dict[str, _Grid]:
    """Yield a grid for each platform and kind; kinds for all Pythons share one."""
    grids: dict[str, _Grid] = {}
    for cell, presence in cells.items():
        _, platform, block, python, package = cell.split("/")
        shared = python == ANY_PYTHON
        grid = grids.setdefault(f"{platform} {'for all Pythons' if shared else package}", {})
        grid.setdefault(block, {})[package if shared else python] = presence
    return grids


def _table(grid: _Grid) -> Lines:
    columns = list(dict.fromkeys(column for row in grid.values() for column in row))
    headings = (column.removeprefix("cp").replace("-", "-\n") for column in columns)
    made = table([word(), *map(centred, headings)], tight=True)
    for name, row in grid.items():
        marks = (_MARKS[row[column]] if column in row else _NEVER for column in columns)
        made.add_row(name, *(styled(mark, style) for mark, style in marks))
    yield made


def _legend() -> Lines:
    words: Iterator[tuple[str, str]] = (
        part
        for presence, (mark, style) in _MARKS.items()
        for part in ((mark, style), (f" {presence}  ", ""))
    )
    yield assembled(*words, _NEVER, " not planned")
