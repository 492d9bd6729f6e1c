"""Third-party dependencies: versions in a source tree, in torchyard, and in indexes."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

from msgspec.structs import replace
from packaging.version import Version

from torchyard.config.tables import load_tables
from torchyard.doctor.tree import read_tree
from torchyard.errors import HostError, SelectionError
from torchyard.features.deps.report import Dependency, DepsReport
from torchyard.host.machine import platform_name
from torchyard.host.network_settings import network_settings
from torchyard.index.conda.newest import newest_conda_versions
from torchyard.index.conda.repodata import NOARCH
from torchyard.index.simple.project_files import list_wheels
from torchyard.index.simple.section import SimpleSection
from torchyard.insight.dependency_table import DependencyTable, dependency_table
from torchyard.insight.drift import find_drift
from torchyard.insight.submodules import read_submodules
from torchyard.insight.version_readings import (
    ReadFrom,
    VersionReading,
    read_table_versions,
    read_tree_versions,
    requirements_in,
)
from torchyard.publish.channel.layout import PartName, key_of
from torchyard.workspace.locations import read_channel

_AT_ONCE = 8
_PROJECT = "torch"


def compare_dependencies(
    source: str,
    *,
    file: str = "torchyard.toml",
    channel: str = "",
    newest: bool = False,
    conda: str = "",
) -> DepsReport:
    """Read the versions of all dependencies of a source tree, and find disagreements.

    Args:
        source: The directory of the tree.
        file: The configuration; its pins are compared if it exists.
        channel: A channel, whose newest torch's requirements are compared.
        newest: Whether to ask the caller's package indexes for the newest versions.
        conda: The address of a conda channel to ask for its newest versions.
    """
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
    known = dict.fromkeys((*expected, *(reading.dependency for reading in readings)))
    readings += read_table_versions(facts.release, table)
    readings += _recipe(Path(file), table)
    if channel:
        readings += _channel(channel, file, table)
    if newest:
        readings += _indexes(list(known), table)
    if conda:
        readings += _conda(conda, list(known), table)
    return DepsReport(
        source=source,
        release=facts.release,
        dependencies=[
            Dependency(name, [reading for reading in readings if reading.dependency == name])
            for name in sorted(known)
        ],
        drift=find_drift(readings, submodules.moved, table),
    )


def _recipe(file: Path, table: DependencyTable) -> Iterator[VersionReading]:
    if file.is_file():
        text = file.read_text(encoding="utf-8", errors="replace")
        yield from requirements_in(text, str(file), ReadFrom.RECIPE, table.pip_names())


def _channel(name: str, file: str, table: DependencyTable) -> Iterator[VersionReading]:
    """Yield the requirements of a channel's newest torch, in each variant."""
    channel = read_channel(name, file)
    part = PartName(SimpleSection.NAME, _PROJECT)
    entries = [e for e in channel.state(channel.head(), str(part)).entries if e.metadata]
    entries.sort(key=lambda entry: (entry.variant, Version(entry.version)))
    for _, found in groupby(entries, key=lambda entry: entry.variant):
        *_, newest = found
        key = f"{key_of(part, newest)}.metadata"
        text = (channel.read(key) or b"").decode(errors="replace")
        for reading in requirements_in(text, "METADATA", ReadFrom.CHANNEL, table.pip_names()):
            yield _moved_to(reading, f"{newest.file}.metadata")


def _moved_to(reading: VersionReading, file: str) -> VersionReading:
    return replace(reading, file=file)


def _indexes(names: Sequence[str], table: DependencyTable) -> Iterator[VersionReading]:
    """Yield the newest version of each Python package in the caller's indexes."""
    network = network_settings()
    projects = {
        name: (name,) if table.rule(name).pip is None else table.rule(name).pip for name in names
    }
    asked = [(name, project) for name, others in projects.items() for project in others or ()]

    def newest(project: str) -> Version | None:
        wheels = list_wheels(project, network.indexes, network.links)
        return max((w.version for w in wheels if not w.version.is_prerelease), default=None)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(newest, (project for _, project in asked)))
    best: dict[str, tuple[Version, str]] = {}
    for (name, project), version in zip(asked, found, strict=True):
        if version:
            best[name] = max((version, project), best.get(name, (version, project)))
    for name, (version, project) in best.items():
        yield _newest(name, ReadFrom.INDEX, str(version), project)


def _conda(channel: str, names: Iterable[str], table: DependencyTable) -> Iterator[VersionReading]:
    called = {table.rule(name).conda or name: name for name in names}
    subdir = load_tables().platforms[platform_name()].conda_subdir
    for package, version in newest_conda_versions(channel, called, (subdir, NOARCH)).items():
        yield _newest(called[package], ReadFrom.CONDA, version, package)


def _newest(name: str, source: ReadFrom, version: str, package: str) -> VersionReading:
    return VersionReading(
        dependency=name, read_from=source, version=version, file=f"{package} {version}"
    )
