"""Which versions of a dependency disagree."""

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
    """Return what disagrees, the worst first.

    Everything is compared with what the tree says. What contradicts a version that the tree
    requires is an error, what differs from one that its CI uses a warning, and that the newest one
    of an index does not fit is a note.
    """
    found = [_moved(one) for one in moved]
    for name in dict.fromkeys(one.dependency for one in readings):
        own = [one for one in readings if one.dependency == name]
        several = table.rule(name).several
        found += _missing(own) if several else _drift(own)
    order = list(Severity)
    return sorted(found, key=lambda one: (order.index(one.severity), one.dependency))


def _moved(one: MovedSubmodule) -> VersionDrift:
    what = f"is checked out at {one.reading.commit[:10]}, and the tree names {one.named[:10]}"
    return VersionDrift(
        dependency=one.reading.dependency,
        severity=Severity.ERROR,
        what=what,
        reading=one.reading,
    )


def _drift(readings: Sequence[VersionReading]) -> Iterator[VersionDrift]:
    """Yield what disagrees with the first line of the tree that contradicts it."""
    tree = [one for one in readings if one.place is ReadFrom.TREE and one.version]
    tree.sort(key=lambda one: not one.required)  # what binds first
    for number, one in enumerate(tree):
        for other in tree[:number]:
            if _may_meet(one, other) and not agree(one, other):
                severity = Severity.ERROR if one.required and other.required else Severity.WARNING
                yield _between(one, other, severity)
                break
    others = [one for one in readings if one.place is not ReadFrom.TREE]
    against = {id(one): _contradicted(one, tree) for one in others}
    agreeing = {one.file for one in others if against[id(one)] is None}
    for one in others:
        found = against[id(one)]
        is_choice = one.place is ReadFrom.TABLES and one.file in agreeing  # one for each compute
        if found and not is_choice:
            yield _between(one, found, _severity(one, found))


def _may_meet(one: VersionReading, other: VersionReading) -> bool:
    """Return whether both can be for one machine; of two markers, only if they are the same."""
    return not one.marker or not other.marker or one.marker == other.marker


def _severity(one: VersionReading, against: VersionReading) -> Severity:
    if one.place not in _OURS:
        return Severity.NOTE
    return Severity.ERROR if against.required else Severity.WARNING


def _contradicted(one: VersionReading, tree: Sequence[VersionReading]) -> VersionReading | None:
    """Return the line of the tree that a version contradicts.

    Of what CI pins, one has to agree, and only if the tree requires nothing.
    """
    required = [other for other in tree if other.required]
    if required:
        return next((other for other in required if not agree(one, other)), None)
    return tree[0] if tree and not any(agree(one, other) for other in tree) else None


def _missing(readings: Sequence[VersionReading]) -> Iterator[VersionDrift]:
    """Yield versions of the tree that the tables don't have, each once."""
    tables = [one for one in readings if one.place is ReadFrom.TABLES]
    seen: set[str] = set()
    for one in readings:
        if one.place is not ReadFrom.TREE or not one.version or one.version in seen or not tables:
            continue
        seen.add(one.version)
        if not any(agree(one, other) for other in tables):
            what = f"{_HAS[one.place]} {one}, and {_HAS[ReadFrom.TABLES]} no row for it"
            yield VersionDrift(
                dependency=one.dependency,
                severity=Severity.WARNING,
                what=what,
                reading=one,
                against=tables[0],
            )


def _between(one: VersionReading, against: VersionReading, severity: Severity) -> VersionDrift:
    what = f"{_HAS[one.place]} {one}, and {_HAS[against.place]} {against}"
    return VersionDrift(
        dependency=one.dependency, severity=severity, what=what, reading=one, against=against
    )


def agree(one: VersionReading, other: VersionReading) -> bool:
    """Return whether two readings can be of one version; what is not known agrees with all."""
    mine, its = one.exact, other.exact
    if mine and its:
        return _is_same(mine, its, ahead=one.ahead, other_ahead=other.ahead)
    for version, bounds in ((mine, other.bounds), (its, one.bounds)):
        if version and bounds is not None:
            return bounds.contains(version, prereleases=True)
    return True


def _is_same(one: Version, other: Version, *, ahead: bool, other_ahead: bool) -> bool:
    """Compare versions as far as both go; commits on top of one may have made it a later one."""
    if (ahead and other >= one) or (other_ahead and one >= other):
        return True
    length = min(len(one.release), len(other.release))
    if one.release[:length] != other.release[:length]:
        return False
    return one.pre == other.pre or len(one.release) != len(other.release)
