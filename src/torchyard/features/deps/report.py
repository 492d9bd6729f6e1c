"""The versions of dependencies, and which disagree."""

from typing import Literal, NamedTuple

from torchyard.errors import DriftError
from torchyard.insight.drift import VersionDrift
from torchyard.insight.version_readings import ReadFrom, VersionReading
from torchyard.model.quantity import show_count
from torchyard.model.severity import Severity
from torchyard.model.values import Reported
from torchyard.terminal.tables import STYLES, Lines, and_more, folded, indented, table
from torchyard.terminal.untrusted import printable

_MOST = 3
_LISTED = 40


class Dependency(Reported):
    """A dependency, and every line that has a version of it."""

    name: str
    readings: list[VersionReading]

    def versions(self, place: ReadFrom) -> list[str]:
        """Return the versions at one place, each once."""
        own = [one for one in self.readings if one.read_from is place]
        stated = [one for one in own if one.version]
        return list(dict.fromkeys(str(one) for one in stated or own))


class DepsReport(Reported, kw_only=True):
    """`torchyard deps --json`: the versions of dependencies, and which disagree."""

    version: Literal[1] = 1
    source: str
    release: str
    dependencies: list[Dependency]
    drift: list[VersionDrift]

    def folded_drift(self) -> list[tuple[VersionDrift, list[str]]]:
        """Return what disagrees, and where: several lines that say the same are one entry."""
        found: dict[tuple[str, str], tuple[VersionDrift, dict[str, None]]] = {}
        for one in self.drift:
            _, places = found.setdefault((one.dependency, one.what), (one, {}))
            readings = (one.reading, one.against) if one.against else (one.reading,)
            places.update(dict.fromkeys(reading.where for reading in readings))
        return [(one, list(places)) for one, places in found.values()]


def deps_error(report: DepsReport, *, check: bool) -> DriftError | None:
    """Return which version contradicts one that the tree requires, if that is checked."""
    errors = [one for one in report.drift if one.severity is Severity.ERROR]
    if not check or not errors:
        return None
    first, more = errors[0], len(errors) - 1
    others = f", and {more} more" if more else ""
    msg = f"{first.dependency}: {first.what} ({first.reading.where}){others}"
    return DriftError(msg, hint="change the pin, or the tree; without --check this is a report")


class DepsTable(NamedTuple):
    """The table of all dependencies: its headings, and a row for each."""

    places: list[ReadFrom]
    rows: list[tuple[Dependency, list[str]]]


def deps_table(report: DepsReport) -> DepsTable:
    """Return the table, with a column for each place that something was read from."""
    read = {one.read_from for row in report.dependencies for one in row.readings}
    places = [place for place in ReadFrom if place in read]
    rows = [
        (row, [", ".join(row.versions(place)) for place in places]) for row in report.dependencies
    ]
    return DepsTable(places, rows)


def read_at(row: Dependency) -> str:
    """Return where the first version of the tree is written."""
    own = [one for one in row.readings if one.read_from is ReadFrom.TREE]
    own.sort(key=lambda one: not one.version)
    more = f" and {len(own) - 1} more" if len(own) > 1 else ""
    return f"{own[0].where}{more}" if own else "not in the tree"


def deps_text(report: DepsReport) -> Lines:
    """Show the table, and what disagrees."""
    release = f", torch {report.release}" if report.release else ""
    yield indented(f"{report.source}{release}: {_count(report)}", 0)
    yield ""
    places, rows = deps_table(report)
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
        found = [one for one in report.folded_drift() if one[0].severity is severity]
        if found:
            yield ""
            yield indented(show_count(len(found), severity.value), 0, style=STYLES[severity])
        for one, lines in found[:_LISTED]:
            yield indented(f"{one.dependency}: {one.what}", 2)
            yield indented(", ".join(lines), 4, style="dim")
        yield from and_more(len(found) - _LISTED, 2)


def _count(report: DepsReport) -> str:
    count = len(report.dependencies)
    return "1 dependency" if count == 1 else f"{count:,} dependencies"


def _short(row: Dependency, place: ReadFrom) -> str:
    versions = row.versions(place)
    more = ["…"] if len(versions) > _MOST else []
    return printable(", ".join([*versions[:_MOST], *more]))
