"""What a channel has of a plan, for people."""

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Column
from rich.text import Text

from torchyard.model.identifier import ANY_PYTHON, Cell
from torchyard.model.quantity import show_count
from torchyard.publish.coverage import Coverage, Presence
from torchyard.terminal.tables import table, word

_MARKS = {
    Presence.THERE: ("●", "green"),
    Presence.MISSING: ("○", "bold red"),
    Presence.YANKED: ("y", "yellow"),
    Presence.UNPLANNED: ("+", "cyan"),
}
_NEVER = ("·", "dim")
_VERSIONS = 5
"""How many of a channel's versions are named if the requested one is missing."""

_Grid = dict[str, dict[str, Presence]]
"""Rows `cu130-mkl`, columns of Pythons or of kinds of packages."""


def coverage_report(coverage: Coverage, channel: str, subset: str | None) -> RenderableType:
    """Show a line for what is complete or missing altogether, and a grid for the rest."""
    counts = {presence: len(coverage.those(presence)) for presence in Presence}
    of = f", subset {subset}" if subset else ""
    title = Text.assemble(
        (f"{coverage.project} {coverage.version}", "bold"), f"{of} in ", channel, overflow="fold"
    )
    told = ", ".join(f"{count:,} {presence}" for presence, count in counts.items() if count)
    parts: list[RenderableType] = [title, Text(told, style="bold")]
    if not counts[Presence.THERE] and coverage.versions:
        newest = ", ".join(coverage.versions[:_VERSIONS])
        parts.append(Text(f"the channel has {newest}"))
    broken = False
    for name, grid in _grids(coverage.cells).items():
        found = [presence for row in grid.values() for presence in row.values()]
        same = set(found)
        if same <= {Presence.THERE} or same <= {Presence.MISSING}:
            told = f"{len(found):,} of {show_count(len(found), 'package')} {found[0]}"
            parts += ["", Text.assemble((name, "bold"), ": ", (told, _MARKS[found[0]][1]))]
        else:
            parts += ["", Text(name, style="bold"), _table(grid)]
            broken = True
    if broken:
        parts += ["", _legend()]
    return Group(*parts)


def _grids(cells: Mapping[Cell, Presence]) -> dict[str, _Grid]:
    """A grid for each platform and kind; kinds that are for all Pythons share one."""
    grids: dict[str, _Grid] = {}
    for cell, presence in cells.items():
        shared = cell.python == ANY_PYTHON
        what = "for all Pythons" if shared else cell.package
        grid = grids.setdefault(f"{cell.platform} {what}", {})
        row = grid.setdefault(f"{cell.compute}-{cell.variant}", {})
        row[cell.package if shared else cell.python] = presence
    return grids


def _table(grid: _Grid) -> RenderableType:
    columns = list(dict.fromkeys(column for row in grid.values() for column in row))
    headings = (column.removeprefix("cp").replace("-", "-\n") for column in columns)
    made = table(
        [word(), *(Column(heading, justify="center", no_wrap=True) for heading in headings)],
        tight=True,
    )
    for name, row in grid.items():
        marks = (_MARKS[row[column]] if column in row else _NEVER for column in columns)
        made.add_row(name, *(Text(mark, style=style) for mark, style in marks))
    return made


def _legend() -> Text:
    words: Iterator[tuple[str, str]] = (
        part
        for presence, (mark, style) in _MARKS.items()
        for part in ((mark, style), (f" {presence}  ", ""))
    )
    return Text.assemble(*words, _NEVER, " not planned")
