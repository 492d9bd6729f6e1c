"""What `torchyard deps` prints with `--json`."""

from collections.abc import Iterable, Sequence
from typing import Literal

from torchyard.insight.drift import VersionDrift
from torchyard.insight.version_readings import ReadFrom, VersionReading
from torchyard.reports.document import JsonDocument


class DependencyDocument(JsonDocument, kw_only=True):
    """A dependency, and every line that has a version of it."""

    name: str
    readings: list[VersionReading]

    def versions(self, place: ReadFrom) -> list[str]:
        """Return the versions at one place, each once."""
        own = [one for one in self.readings if one.place is place]
        stated = [one for one in own if one.version]
        return list(dict.fromkeys(str(one) for one in stated or own))


class DepsDocument(JsonDocument, kw_only=True):
    """`torchyard deps --json`: the versions of dependencies, and which disagree."""

    version: Literal[1] = 1
    source: str
    release: str
    dependencies: list[DependencyDocument]
    drift: list[VersionDrift]

    def folded_drift(self) -> list[tuple[VersionDrift, list[str]]]:
        """Return what disagrees, and where: several lines that say the same are one entry."""
        found: dict[tuple[str, str], tuple[VersionDrift, dict[str, None]]] = {}
        for one in self.drift:
            _, places = found.setdefault((one.dependency, one.what), (one, {}))
            readings = (one.reading, one.against) if one.against else (one.reading,)
            places.update(dict.fromkeys(reading.where for reading in readings))
        return [(one, list(places)) for one, places in found.values()]


def deps_document(
    source: str,
    release: str,
    names: Iterable[str],
    readings: Sequence[VersionReading],
    drift: Sequence[VersionDrift],
) -> DepsDocument:
    """Describe the dependencies of a tree, sorted by name; what only others have is left out."""
    return DepsDocument(
        source=source,
        release=release,
        dependencies=[
            DependencyDocument(
                name=name, readings=[one for one in readings if one.dependency == name]
            )
            for name in sorted(names)
        ],
        drift=list(drift),
    )
