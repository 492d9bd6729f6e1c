"""The versions of dependencies, and their disagreements."""

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
    """A dependency, and every line with its version."""

    name: str
    readings: list[VersionReading]

    def versions(self, source: ReadFrom) -> list[str]:
        """Return the versions in a source, each once."""
        own = [reading for reading in self.readings if reading.read_from is source]
        stated = [reading for reading in own if reading.version]
        return list(dict.fromkeys(str(reading) for reading in stated or own))


class DepsReport(Reported, kw_only=True):
    """`torchyard deps --json`: the versions of dependencies, and their disagreements."""

    version: Literal[1] = 1
    source: str
    release: str
    dependencies: list[Dependency]
    drift: list[VersionDrift]

    def folded_drift(self) -> list[tuple[VersionDrift, list[str]]]:
        """Return disagreements with their lines; equal ones are merged."""
        found: dict[tuple[str, str], tuple[VersionDrift, dict[str, None]]] = {}
        for drift in self.drift:
            _, sources = found.setdefault((drift.dependency, drift.what), (drift, {}))
            readings = (drift.reading, drift.against) if drift.against else (drift.reading,)
            sources.update(dict.fromkeys(reading.where for reading in readings))
        return [(drift, list(lines)) for drift, lines in found.values()]


def deps_error(report: DepsReport, *, check: bool) -> DriftError | None:
    """Return an error if a version contradicts a requirement of the tree, and `check` is set."""
    errors = [drift for drift in report.drift if drift.severity is Severity.ERROR]
    if not check or not errors:
        return None
    first, more = errors[0], len(errors) - 1
    others = f", and {more} more" if more else ""
    msg = f"{first.dependency}: {first.what} ({first.reading.where}){others}"
    return DriftError(msg, hint="change the pin, or the tree; without --check this is a report")


class DepsTable(NamedTuple):
    """The table of all dependencies: headings, and a row for each."""

    sources: list[ReadFrom]
    rows: list[tuple[Dependency, list[str]]]


def deps_table(report: DepsReport) -> DepsTable:
    """Return the table, with a column for each source."""
    read = {reading.read_from for row in report.dependencies for reading in row.readings}
    sources = [source for source in ReadFrom if source in read]
    rows = [
        (row, [", ".join(row.versions(source)) for source in sources])
        for row in report.dependencies
    ]
    return DepsTable(sources, rows)


def read_at(row: Dependency) -> str:
    """Return the location of the first version in the tree."""
    own = [reading for reading in row.readings if reading.read_from is ReadFrom.TREE]
    own.sort(key=lambda reading: not reading.version)
    more = f" and {len(own) - 1} more" if len(own) > 1 else ""
    return f"{own[0].where}{more}" if own else "not in the tree"


def deps_text(report: DepsReport) -> Lines:
    """Show the table, and the disagreements."""
    release = f", torch {report.release}" if report.release else ""
    yield indented(f"{report.source}{release}: {_count(report)}", 0)
    yield ""
    sources, rows = deps_table(report)
    columns = [folded("dependency"), *(folded(s.value) for s in sources), folded("read at")]
    yield table(
        columns,
        (
            [
                printable(row.name),
                *(_short(row, source) for source in sources),
                printable(read_at(row)),
            ]
            for row, _ in rows
        ),
        tight=True,
    )
    for severity in Severity:
        found = [drift for drift in report.folded_drift() if drift[0].severity is severity]
        if found:
            yield ""
            yield indented(show_count(len(found), severity.value), 0, style=STYLES[severity])
        for drift, lines in found[:_LISTED]:
            yield indented(f"{drift.dependency}: {drift.what}", 2)
            yield indented(", ".join(lines), 4, style="dim")
        yield from and_more(len(found) - _LISTED, 2)


def _count(report: DepsReport) -> str:
    count = len(report.dependencies)
    return "1 dependency" if count == 1 else f"{count:,} dependencies"


def _short(row: Dependency, source: ReadFrom) -> str:
    versions = row.versions(source)
    more = ["…"] if len(versions) > _MOST else []
    return printable(", ".join([*versions[:_MOST], *more]))
