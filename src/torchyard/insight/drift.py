"""Find disagreeing versions of a dependency."""

from collections.abc import Iterator, Sequence

from packaging.version import Version

from torchyard.insight.dependency_table import DependencyTable
from torchyard.insight.submodules import MovedSubmodule
from torchyard.insight.version_readings import ReadFrom, VersionReading
from torchyard.model.severity import Severity
from torchyard.model.values import Reported

_HAS = {
    ReadFrom.TREE: "the tree has",
    ReadFrom.RECIPE: "the recipe has",
    ReadFrom.TABLES: "torchyard's tables have",
    ReadFrom.CHANNEL: "the channel has",
    ReadFrom.INDEX: "the index has",
    ReadFrom.CONDA: "the conda channel has",
}
_OURS = (ReadFrom.RECIPE, ReadFrom.TABLES, ReadFrom.CHANNEL)


class VersionDrift(Reported, kw_only=True):
    """Two readings of a dependency that disagree."""

    dependency: str
    severity: Severity
    what: str
    reading: VersionReading
    against: VersionReading | None = None


def find_drift(
    readings: Sequence[VersionReading], moved: Sequence[MovedSubmodule], table: DependencyTable
) -> list[VersionDrift]:
    """Return disagreements, the worst first.

    All readings are compared with the tree's. Contradicting a version that the tree requires is an
    error, differing from its CI a warning, and for the newest version of an index, a note.
    """
    found = [_moved(submodule) for submodule in moved]
    for name in dict.fromkeys(reading.dependency for reading in readings):
        group = [reading for reading in readings if reading.dependency == name]
        several = table.rule(name).several
        found += _missing(group) if several else _drift(group)
    order = list(Severity)
    return sorted(found, key=lambda drift: (order.index(drift.severity), drift.dependency))


def _moved(submodule: MovedSubmodule) -> VersionDrift:
    reading = submodule.reading
    what = f"is checked out at {reading.commit[:10]}, and the tree names {submodule.named[:10]}"
    return VersionDrift(
        dependency=reading.dependency, severity=Severity.ERROR, what=what, reading=reading
    )


def _drift(readings: Sequence[VersionReading]) -> Iterator[VersionDrift]:
    """Yield readings with the tree's first line that contradicts them."""
    tree = [r for r in readings if r.read_from is ReadFrom.TREE and r.version]
    tree.sort(key=lambda reading: not reading.required)  # binding ones first
    for number, reading in enumerate(tree):
        for other in tree[:number]:
            if _may_meet(reading, other) and not agree(reading, other):
                required = reading.required and other.required
                yield _between(reading, other, Severity.ERROR if required else Severity.WARNING)
                break
    others = [reading for reading in readings if reading.read_from is not ReadFrom.TREE]
    against = {id(reading): _contradicted(reading, tree) for reading in others}
    agreeing = {reading.file for reading in others if against[id(reading)] is None}
    for reading in others:
        found = against[id(reading)]
        is_choice = reading.read_from is ReadFrom.TABLES and reading.file in agreeing
        if found and not is_choice:  # of tables, one compute's version has to agree
            yield _between(reading, found, _severity(reading, found))


def _may_meet(reading: VersionReading, other: VersionReading) -> bool:
    """Return whether both can apply on a machine: two markers only if they are equal."""
    return not reading.marker or not other.marker or reading.marker == other.marker


def _severity(reading: VersionReading, against: VersionReading) -> Severity:
    if reading.read_from not in _OURS:
        return Severity.NOTE
    return Severity.ERROR if against.required else Severity.WARNING


def _contradicted(reading: VersionReading, tree: Sequence[VersionReading]) -> VersionReading | None:
    """Return the line of the tree that a version contradicts.

    Pins of CI only count if the tree requires nothing; then one has to agree.
    """
    required = [other for other in tree if other.required]
    if required:
        return next((other for other in required if not agree(reading, other)), None)
    return tree[0] if tree and not any(agree(reading, other) for other in tree) else None


def _missing(readings: Sequence[VersionReading]) -> Iterator[VersionDrift]:
    """Yield versions of the tree that are missing from the tables, each once."""
    tables = [reading for reading in readings if reading.read_from is ReadFrom.TABLES]
    tree = [r for r in readings if r.read_from is ReadFrom.TREE and r.version]
    first: dict[str, VersionReading] = {}
    for reading in tree:
        first.setdefault(reading.version, reading)
    for reading in first.values():
        if tables and not any(agree(reading, other) for other in tables):
            what = f"{_HAS[reading.read_from]} {reading}, and {_HAS[ReadFrom.TABLES]} no row for it"
            yield VersionDrift(
                dependency=reading.dependency,
                severity=Severity.WARNING,
                what=what,
                reading=reading,
                against=tables[0],
            )


def _between(reading: VersionReading, against: VersionReading, severity: Severity) -> VersionDrift:
    what = f"{_HAS[reading.read_from]} {reading}, and {_HAS[against.read_from]} {against}"
    return VersionDrift(
        dependency=reading.dependency,
        severity=severity,
        what=what,
        reading=reading,
        against=against,
    )


def agree(reading: VersionReading, other: VersionReading) -> bool:
    """Return whether two readings can mean the same version; unknown ones agree with all."""
    mine, its = reading.exact, other.exact
    if mine and its:
        return _is_same(mine, its, ahead=reading.ahead, other_ahead=other.ahead)
    for version, bounds in ((mine, other.bounds), (its, reading.bounds)):
        if version and bounds is not None:
            return bounds.contains(version, prereleases=True)
    return True


def _is_same(version: Version, other: Version, *, ahead: bool, other_ahead: bool) -> bool:
    """Compare versions to the shorter length; commits on top may lead to a later version."""
    if (ahead and other >= version) or (other_ahead and version >= other):
        return True
    length = min(len(version.release), len(other.release))
    if version.release[:length] != other.release[:length]:
        return False
    return version.pre == other.pre or len(version.release) != len(other.release)
