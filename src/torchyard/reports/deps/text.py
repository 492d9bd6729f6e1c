"""The dependencies of a tree, for people: on a terminal, and as Markdown."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Group, RenderableType

from torchyard.host.own_files import WRITTEN
from torchyard.insight.version_readings import ReadFrom
from torchyard.model.quantity import show_count
from torchyard.model.severity import Severity
from torchyard.reports.deps.document import DependencyDocument, DepsDocument
from torchyard.reports.tables import and_more, folded, indented, table
from torchyard.terminal.untrusted import printable

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
_MOST = 3
_LISTED = 40


class DepsTable(NamedTuple):
    """The table of all dependencies: its headings, and a row for each."""

    places: list[ReadFrom]
    rows: list[tuple[DependencyDocument, list[str]]]


def deps_table(document: DepsDocument) -> DepsTable:
    """Return the table, with a column for each place that something was read from."""
    read = {one.place for row in document.dependencies for one in row.readings}
    places = [place for place in ReadFrom if place in read]
    rows = [
        (row, [", ".join(row.versions(place)) for place in places]) for row in document.dependencies
    ]
    return DepsTable(places, rows)


def read_at(row: DependencyDocument) -> str:
    """Return where the first version of the tree is written."""
    own = [one for one in row.readings if one.place is ReadFrom.TREE]
    own.sort(key=lambda one: not one.version)
    more = f" and {len(own) - 1} more" if len(own) > 1 else ""
    return f"{own[0].where}{more}" if own else "not in the tree"


def deps_report(document: DepsDocument) -> RenderableType:
    """Show the table, and what disagrees."""
    return Group(*_parts(document))


def _parts(document: DepsDocument) -> Iterator[RenderableType]:
    release = f", torch {document.release}" if document.release else ""
    yield indented(f"{document.source}{release}: {_count(document)}", 0)
    yield ""
    places, rows = deps_table(document)
    columns = [folded("dependency"), *(folded(place.value) for place in places), folded("read at")]
    yield table(
        columns,
        (
            [
                printable(row.name),
                *(_short(row, place) for place in places),
                printable(read_at(row)),
            ]
            for row, _ in rows
        ),
        tight=True,
    )
    for severity in Severity:
        found = [one for one in document.folded_drift() if one[0].severity is severity]
        if found:
            yield ""
            yield indented(show_count(len(found), severity.value), 0, style=_STYLES[severity])
        for one, lines in found[:_LISTED]:
            yield indented(f"{one.dependency}: {one.what}", 2)
            yield indented(", ".join(lines), 4, style="dim")
        yield from and_more(len(found) - _LISTED, 2)


def _count(document: DepsDocument) -> str:
    count = len(document.dependencies)
    return "1 dependency" if count == 1 else f"{count:,} dependencies"


def _short(row: DependencyDocument, place: ReadFrom) -> str:
    versions = row.versions(place)
    more = ["…"] if len(versions) > _MOST else []
    return printable(", ".join([*versions[:_MOST], *more]))


def deps_markdown(document: DepsDocument) -> str:
    """Return the table and what disagrees as Markdown."""
    places, rows = deps_table(document)
    lines = [f"<!-- {WRITTEN} -->"]
    lines.append(_row("Dependency", *(place.value.capitalize() for place in places), "Read at"))
    lines.append(_row(*["---"] * (len(places) + 2)))
    lines += [_row(row.name, *cells, f"`{read_at(row)}`") for row, cells in rows]
    lines += [""] if document.drift else []
    for one, read in document.folded_drift():
        what = f"- {one.severity.value}: **{one.dependency}**: {_escaped(one.what)}"
        lines.append(f"{what} ({', '.join(f'`{line}`' for line in read)})")
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
