"""Packages to publish, with the facts that a channel needs."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from torchyard.checks.cell import cell_mismatches, claimed_cell
from torchyard.checks.expected import Expected, expected_of, spec_in_package
from torchyard.checks.rule import Finding
from torchyard.errors import (
    BuildError,
    CheckError,
    Diagnostic,
    HostError,
    PublishError,
    SelectionError,
)
from torchyard.index.entry import Entry, sort_key
from torchyard.index.sections import section_for
from torchyard.model.conda_output import NONE, CondaOutputs
from torchyard.model.identifier import Cell, parse
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.model.tables import TORCH_PREFIX
from torchyard.package.contents import Contents
from torchyard.package.delivered import PROVENANCE, is_package_name
from torchyard.package.formats import format_named
from torchyard.package.read import read_package
from torchyard.package.statement import check_statement, read_statement
from torchyard.package.wheel.name import is_wheel_name
from torchyard.package.zip.unpack import plain_directory
from torchyard.publish.provenance import LARGEST_PROVENANCE, check_provenance
from torchyard.store.makers import Trust

Grouping = Literal["compute", "compute-blas"]
"""The scheme for names of a channel's variants."""

METADATA = ".metadata"

_CHUNK = 1 << 20


class FileDigests(NamedTuple):
    """The digests of a file's bytes."""

    sha256: str
    md5: str
    size: int


Findings = tuple[Finding, ...]


class Package(NamedTuple):
    """A file, its part of a channel, and its facts for the channel."""

    path: Path
    part: str
    entry: Entry
    name: str
    """The name in requirements: normalised for a wheel, unchanged for a conda package."""
    requires: tuple[str, ...]
    """The names of its requirements, except those of extras and virtual conda packages.

    Requirements by address or channel include that: `demo @ https://…`, `conda-forge::demo`.
    """
    findings: Findings
    """Its faults."""
    metadata: bytes = b""
    provenance: bytes = b""
    statement: bytes = b""
    """The statement of its origin, proven and signed."""
    cells: tuple[str, ...] = ()
    """The cells whose jobs delivered it; empty if unknown."""
    mismatches: tuple[str, ...] = ()
    """Its differences from these cells."""


CellFinder = Callable[[Path, str], str]
"""Returns the cell whose job delivered a file, by path and sha256; empty if unknown."""


def made_elsewhere(_path: Path, _sha256: str) -> str:
    """Return no cell for any file."""
    return ""


Judge = Callable[[str, Contents], Findings]
"""Returns the findings for a package, from its sha256 and contents."""


def trust(_sha256: str, _contents: Contents) -> Findings:
    """Return no findings for any package."""
    return ()


def read_staged(  # noqa: PLR0913 - what to read, and what is known of it
    paths: Iterable[Path],
    grouping: Grouping,
    now: str,
    judge: Judge = trust,
    *,
    read: Callable[[Path], Contents] = read_package,
    cell_for: CellFinder = made_elsewhere,
    outputs: CondaOutputs = NONE,
    trust: Trust | None = None,
) -> list[Package]:
    """Read all packages among files and below directories one by one.

    Duplicates are read once. Raise the errors of files that are no packages, and of wheels that no
    installer should unpack, whatever evidence there is.
    """
    packages: dict[tuple[str, ...], Package] = {}
    wrong: list[Diagnostic] = []
    for path in find_packages(paths):
        try:
            digests, contents = _read_once(path, read)
            cell = cell_for(path, digests.sha256)
            entry = _entry(contents, digests, cell, grouping, now)
            findings = judge(entry.sha256, contents)
            package = _package(path, contents, entry, findings, digests.md5)
            package = package._replace(statement=_statement(path, entry.sha256, trust))
            if cell:
                found = cell_mismatches(contents, cell, outputs)
                mismatches = tuple(f"{mismatch}: {cell}" for mismatch in found)
                package = package._replace(cells=(cell,), mismatches=mismatches)
            key = (package.part, *sort_key(entry), entry.sha256)
            packages[key] = _merged(packages.get(key), package)
        except (BuildError, PublishError) as error:  # it is broken, or unsuitable for a channel
            wrong += error.diagnostics
    if wrong:
        raise PublishError.of(wrong)
    return list(packages.values())


def _read_once(path: Path, read: Callable[[Path], Contents]) -> tuple[FileDigests, Contents]:
    """Return the digests and the contents of the same bytes, which are sound if it is a wheel."""
    before = _identity(path)
    if is_wheel_name(path.name):
        refuse_unsound(path)
    digests, contents = digests_of(path), read(path)
    if _identity(path) != before:
        msg = f"`{path}` was changed while it was being read"
        raise PublishError(msg, hint="publish it again once no program writes to it")
    return digests, contents


def _identity(path: Path) -> tuple[int, ...]:
    """Return values that change if a file is replaced or written; no user can set the last."""
    with _reading(path):
        status = path.stat()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn an OSError into a HostError that names the file."""
    try:
        yield
    except OSError as error:
        msg = f"`{path}` can't be read: {error.strerror}"
        raise HostError(msg, hint="check its name and your permissions") from error


def _merged(first: Package | None, other: Package) -> Package:
    """Merge two packages with the same bytes into one, delivered by the jobs of both."""
    if first is None:
        return other
    return first._replace(
        cells=(*first.cells, *other.cells), mismatches=(*first.mismatches, *other.mismatches)
    )


def find_packages(paths: Iterable[Path]) -> list[Path]:
    """Yield package files, each once, without archives of debug information."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            below = sorted(p for p in path.rglob("*") if is_package_name(p.name) and p.is_file())
            for package in below:
                _refuse_outside(package, path)
            found.update(dict.fromkeys(below))
        elif path.is_file():
            format_named(path.name)
            found[path] = None
        else:
            msg = f"there is no `{path}`"
            raise SelectionError(msg, hint="name packages, or directories with packages")
    return list(found)


def _refuse_outside(package: Path, folder: Path) -> None:
    """Fail if a package in a directory is a link to a file outside of it."""
    if not package.resolve().is_relative_to(folder.resolve()):
        msg = f"`{package}` is a link to a file outside of `{folder}`"
        raise SelectionError(msg, hint="copy the file there, or name it instead of the directory")


def digests_of(path: Path) -> FileDigests:
    """Return the digests of a file, read once."""
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    size = 0
    with _reading(path), path.open("rb") as file:
        while piece := file.read(_CHUNK):
            sha256.update(piece)
            md5.update(piece)
            size += len(piece)
    return FileDigests(sha256.hexdigest(), md5.hexdigest(), size)


def _entry(
    contents: Contents, digests: FileDigests, cell: str, grouping: Grouping, now: str
) -> Entry:
    """Return the entry of a package of any kind; `cell` is the one whose job delivered it.

    Without a cell, the spec in the package counts, if the package matches the spec's cell.
    """
    expected, spec = expected_of(contents), spec_in_package(contents)
    return Entry(
        file=contents.file_name,
        version=expected.version,
        variant=_variant(expected, spec, cell, grouping),
        sha256=digests.sha256,
        size=digests.size,
        uploaded=now,
        cell=cell or claimed_cell(contents),
        commit=spec.commit if spec and _has_source(spec) else "",
    )


def _package(path: Path, contents: Contents, entry: Entry, findings: Findings, md5: str) -> Package:
    section = section_for(contents.format)
    staged = section.stage(path, contents, entry, md5, _project_of_cell(contents, entry))
    provenance = _provenance(path, entry.sha256) if section.HAS_PROVENANCE else b""
    return Package(
        path=path,
        part=f"{section.NAME}/{staged.part}",
        entry=msgspec.structs.replace(staged.entry, provenance=bool(provenance)),
        name=staged.name,
        requires=staged.requires,
        findings=findings,
        metadata=staged.metadata,
        provenance=provenance,
    )


def _project_of_cell(contents: Contents, entry: Entry) -> str:
    """Return the project of a package's cell or spec; "" without one that a plan may write."""
    if entry.cell:
        return parse(entry.cell).label.rpartition("-")[0]
    return _facts(spec_in_package(contents)).get("name", "")


def _has_source(spec: JobSpec) -> bool:
    return any(task.stage is Stage.SOURCE for task in spec.tasks)


def _variant(expected: Expected, spec: JobSpec | None, cell: str, grouping: Grouping) -> str:
    """Return the variant of a package; without a compute, it is for all variants.

    An extension's torch is no part of it: torch has separate indexes, by requirements.
    """
    if cell:
        _, compute, blas, *_ = Cell.from_path(parse(cell).path)
    else:
        compute, blas = expected.compute, _facts(spec).get("variant", "")
    is_blas = blas and not blas.startswith(TORCH_PREFIX)
    return f"{compute}-{blas}" if compute and is_blas and grouping == "compute-blas" else compute


def _facts(spec: JobSpec | None) -> dict[str, str]:
    """Return the cell's facts in a spec, or none if no plan would write it."""
    try:
        return spec.task.facts if spec and spec.tasks else {}
    except ValueError:
        return {}


def _provenance(path: Path, sha256: str) -> bytes:
    """Return the verified provenance (PEP 740) beside a wheel, if there is one."""
    provenance = path.with_name(path.name + PROVENANCE)
    if not provenance.is_file():
        return b""
    with provenance.open("rb") as file:
        data = file.read(LARGEST_PROVENANCE + 1)
    if len(data) > LARGEST_PROVENANCE:
        msg = f"`{provenance.name}` has more than {LARGEST_PROVENANCE:,} bytes"
        raise PublishError(msg, hint="write it again, or remove it")
    check_provenance(path.name, data, sha256)
    return data


def _statement(path: Path, sha256: str, trust: Trust | None) -> bytes:
    """Return the statement beside a package, if it is proven; without trust, none is."""
    data = read_statement(path)
    if trust is None or data is None:
        return b""
    try:
        check_statement(data, path.name, sha256, trust)
    except CheckError as error:
        msg = f"the statement beside `{path.name}` can't be published: {error}"
        raise PublishError(msg, hint="remove it, or trust its maker") from error
    return data


def refuse_unsound(path: Path) -> None:
    """Raise PublishError if a wheel has links or members that lead elsewhere, or is ambiguous.

    Only the list of members is read.
    """
    try:
        with path.open("rb") as file:
            plain_directory(path.name, file)
    except CheckError as error:
        msg = f"{error} (`torchyard check` says more)"
        raise PublishError(msg, hint="exclude it: no installer should unpack it") from error
