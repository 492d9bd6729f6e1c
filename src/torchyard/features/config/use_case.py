"""The settings of a file, and rows for its [tables], read from the package indexes."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec
from packaging.version import Version

from torchyard.compute.platform import CompilerLimits
from torchyard.compute.registry import platform_for
from torchyard.config.decode import decode
from torchyard.config.load import config_of, read_document
from torchyard.config.matrix import named_values
from torchyard.config.show import settings
from torchyard.config.spec import FileSpec
from torchyard.config.tables import dump, load_tables
from torchyard.features.config.report import ConfigReport
from torchyard.host.files import write_text
from torchyard.host.network_settings import network_settings
from torchyard.host.remote_file import RemoteFile
from torchyard.index.simple.project_files import ListedWheel, list_wheels
from torchyard.model.config import own_release
from torchyard.model.recipe import Dimension
from torchyard.model.tables import TORCH_RELEASE, Release, Tables, python_of
from torchyard.package.wheel.parts import WheelParts
from torchyard.toolchain.environment_lock import TORCH
from torchyard.workspace.indexed_release import IndexedRelease, find_indexed_release, matrix_wheels
from torchyard.workspace.progress import ignore_line

Rows = dict[str, dict[str, dict[str, object]]]
"""The rows of each table, by their names."""


def list_settings(file: str = "torchyard.toml", *, changes: Sequence[str] = ()) -> ConfigReport:
    """Return every value of a file, given or default, with its origin.

    Args:
        file: The configuration.
        changes: Changes to it, each as `KEY=VALUE`.
    """
    document = read_document(file, tuple(changes))
    config_of(file, document)
    return ConfigReport(values=list(settings(document)))


def update_tables(
    file: str = "torchyard.toml",
    *,
    releases: Collection[str] = (),
    write: bool = False,
    on_line: Callable[[str], object] = ignore_line,
) -> str:
    """Return rows for torch releases, and for their CUDA versions and Pythons.

    These are missing from the tables, and returned as text to append to the file; empty if there
    are none, or if they were written.

    Args:
        file: The configuration, with the wanted platforms and compute platforms.
        releases: The torch releases, such as 2.15; by default those that the file needs and the
            tables lack, and all newer ones.
        write: Append the rows to the file.
        on_line: Called with a line for each release found.
    """
    document = read_document(file)
    spec, tables = decode(document), load_tables()
    network = network_settings()
    wheels = list_wheels(TORCH, network.indexes, network.links)
    platforms, computes = matrix_wheels(spec, tables)
    rows: Rows = {}
    for name in dict.fromkeys(releases or _missing(spec, tables, wheels, computes)):
        found = find_indexed_release(name, wheels, platforms=platforms, computes=computes or [""])
        on_line(f"torch {found.version}: {', '.join((*found.row.libraries, *found.row.pythons))}")
        _add_release(rows, name, found, tables)
    given = msgspec.to_builtins(spec.tables)
    new = {
        table: {name: row for name, row in found.items() if name not in given.get(table, {})}
        for table, found in rows.items()
    }
    text = "".join(f"\n{dump(found, '', 'tables', table)}" for table, found in new.items() if found)
    if not text:
        on_line("the tables have everything that the index has")
    elif write:
        write_text(file, document.text.rstrip("\n") + "\n" + text, replace=True)
        on_line(f"wrote {sum(map(len, new.values()))} rows to {file}")
        return ""
    return text.lstrip("\n")


def _missing(
    spec: FileSpec, tables: Tables, wheels: Iterable[ListedWheel], computes: Iterable[str]
) -> list[str]:
    """Return releases that the tables lack, or lack for a compute platform of the file.

    These are releases that the file needs, and newer ones of an index.
    """
    named = [TORCH_RELEASE.fullmatch(name) for name in named_values(spec.matrix, Dimension.TORCH)]
    needed = [match[1] for match in named if match] or [own_release(spec.project.version)]
    versions = sorted({wheel.version for wheel in wheels if not wheel.version.is_prerelease})
    newest = max(map(Version, tables.releases))
    later = [own_release(str(version)) for version in versions if version > newest]
    known = {name: row.libraries for name, row in tables.releases.items()}
    return [
        name
        for name in (*needed, *later)
        if name not in known or (name in needed and not known[name].keys() >= set(computes))
    ]


def _add_release(rows: Rows, name: str, found: IndexedRelease, tables: Tables) -> None:
    """Add facts from a release's wheels that the tables lack to the rows of each table."""
    known = tables.releases.get(name, Release(libraries={}))
    computes = [compute for compute in found.row.libraries if compute not in known.libraries]
    row: dict[str, object] = {} if known.pythons else {"pythons": found.row.pythons}
    for column in ("libraries", "triton", "archs"):
        values: Mapping[str, object] = getattr(found.row, column)
        row[column] = {compute: values[compute] for compute in computes if compute in values}
    if computes or name not in tables.releases:
        rows.setdefault("releases", {})[name] = {key: value for key, value in row.items() if value}
        rows["releases"][name].setdefault("libraries", {})
    for python in found.row.pythons:
        if python not in tables.pythons and (new := python_of(python)):
            rows.setdefault("pythons", {})[python] = msgspec.to_builtins(new)
    for compute in computes:
        limits = platform_for(compute).compiler_limits(compute)
        if compute not in tables.compute and limits:
            new_row = _compute_row(compute, limits) | {"archs": found.row.archs.get(compute, {})}
            rows.setdefault("compute", {})[compute] = new_row


def _compute_row(compute: str, limits: CompilerLimits) -> dict[str, object]:
    """Return the row of a toolkit's version: the host compilers that its header admits."""
    version = platform_for(compute).version(compute)
    row: dict[str, object] = {"version": version}
    network = network_settings()
    for wheel in list_wheels(limits.distribution, network.indexes, network.links):
        if ".".join(map(str, wheel.version.release[:2])) != version or wheel.version.is_prerelease:
            continue
        parts = WheelParts(RemoteFile(wheel.url))
        for member in parts.members:
            if member.endswith(limits.header):
                row |= {key: parts.search(member, find) for key, find in limits.newest.items()}
    return row
