"""Third-party dependencies: their versions in a source tree, here, and where packages are."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from torchyard.app.locations import read_channel
from torchyard.errors import DriftError, HostError, SelectionError
from torchyard.insight.version_readings import ReadFrom, VersionReading, requirements_in
from torchyard.model.severity import Severity

if TYPE_CHECKING:
    from torchyard.insight.dependency_table import DependencyTable
    from torchyard.reports.deps.document import DepsDocument

_AT_ONCE = 8
_PROJECT = "torch"


def compare_dependencies(
    source: str,
    *,
    file: str = "torchyard.toml",
    channel: str = "",
    newest: bool = False,
    conda: str = "",
) -> "DepsDocument":
    """Read the versions of all dependencies of a source tree, and find those that disagree.

    Args:
        source: The directory of the tree.
        file: The configuration; what it pins is compared if it exists.
        channel: A channel, whose newest torch says what it requires.
        newest: Whether to ask the caller's package indexes for the newest versions.
        conda: The address of a conda channel to ask for its newest versions.
    """
    from torchyard.doctor.tree import read_tree
    from torchyard.insight.dependency_table import dependency_table
    from torchyard.insight.drift import find_drift
    from torchyard.insight.submodules import read_submodules
    from torchyard.insight.version_readings import read_table_versions, read_tree_versions
    from torchyard.reports.deps.document import deps_document

    tree = Path(source)
    if not tree.is_dir():
        msg = f"there is no directory `{source}`"
        raise HostError(msg, hint="--source names the directory of a checkout")
    table, facts = dependency_table(), read_tree(tree)
    submodules = read_submodules(tree, table)
    readings = [*read_tree_versions(tree, table), *submodules.readings]
    if not readings:
        msg = f"`{source}` has no files that torchyard knows versions of"
        raise SelectionError(msg, hint="--source names the top directory of a checkout of PyTorch")
    expected = table.dependencies if facts.is_torch else ()
    known = dict.fromkeys((*expected, *(one.dependency for one in readings)))
    readings += read_table_versions(facts.release, table)
    readings += _recipe(Path(file), table)
    if channel:
        readings += _channel(channel, file, table)
    if newest:
        readings += _indexes(list(known), table)
    if conda:
        readings += _conda(conda, list(known), table)
    return deps_document(
        source, facts.release, known, readings, find_drift(readings, submodules.moved, table)
    )


def refuse_version_drift(document: "DepsDocument") -> None:
    """Raise DriftError if a version contradicts one that the tree requires."""
    errors = [one for one in document.drift if one.severity is Severity.ERROR]
    if errors:
        first, more = errors[0], len(errors) - 1
        others = f", and {more} more" if more else ""
        msg = f"{first.dependency}: {first.what} ({first.reading.where}){others}"
        raise DriftError(msg, hint="change the pin, or the tree; without --check this is a report")


def _recipe(file: Path, table: "DependencyTable") -> Iterator[VersionReading]:
    if file.is_file():
        text = file.read_text(encoding="utf-8", errors="replace")
        yield from requirements_in(text, str(file), ReadFrom.RECIPE, table.pip_names())


def _channel(place: str, file: str, table: "DependencyTable") -> Iterator[VersionReading]:
    """Yield what the newest torch of a channel requires, of each of its variants."""
    from torchyard.index.simple.section import SimpleSection
    from torchyard.publish.channel.layout import PartName, key_of

    channel = read_channel(place, file)
    part = PartName(SimpleSection.NAME, _PROJECT)
    entries = [one for one in channel.state(channel.head(), str(part)).entries if one.metadata]
    entries.sort(key=lambda one: (one.variant, Version(one.version)))
    for _, found in groupby(entries, key=lambda one: one.variant):
        *_, newest = found
        key = f"{key_of(part, newest)}.metadata"
        text = (channel.read(key) or b"").decode(errors="replace")
        for one in requirements_in(text, "METADATA", ReadFrom.CHANNEL, table.pip_names()):
            yield _moved_to(one, f"{newest.file}.metadata")


def _moved_to(one: VersionReading, file: str) -> VersionReading:
    from msgspec.structs import replace

    return replace(one, file=file)


def _indexes(names: Sequence[str], table: "DependencyTable") -> Iterator[VersionReading]:
    """Yield the newest version of each Python package that the caller's indexes have."""
    from torchyard.host.network_settings import network_settings
    from torchyard.index.simple.project_files import list_wheels

    network = network_settings()
    projects = {
        name: (name,) if table.rule(name).pip is None else table.rule(name).pip for name in names
    }
    asked = [(name, project) for name, others in projects.items() for project in others or ()]

    def newest(project: str) -> Version | None:
        wheels = list_wheels(project, network.indexes, network.links)
        return max((one.version for one in wheels if not one.version.is_prerelease), default=None)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(newest, (project for _, project in asked)))
    best: dict[str, tuple[Version, str]] = {}
    for (name, project), version in zip(asked, found, strict=True):
        if version:
            best[name] = max((version, project), best.get(name, (version, project)))
    for name, (version, project) in best.items():
        yield _newest(name, ReadFrom.INDEX, str(version), project)


def _conda(
    channel: str, names: Iterable[str], table: "DependencyTable"
) -> Iterator[VersionReading]:
    from torchyard.config.tables import load_tables
    from torchyard.host.machine import platform_name
    from torchyard.index.conda.newest import newest_conda_versions
    from torchyard.index.conda.repodata import NOARCH

    called = {table.rule(name).conda or name: name for name in names}
    subdir = load_tables().platforms[platform_name()].conda_subdir
    for package, version in newest_conda_versions(channel, called, (subdir, NOARCH)).items():
        yield _newest(called[package], ReadFrom.CONDA, version, package)


def _newest(name: str, place: ReadFrom, version: str, package: str) -> VersionReading:
    return VersionReading(
        dependency=name, place=place, version=version, file=f"{package} {version}"
    )
