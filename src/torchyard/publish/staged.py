"""Packages that are to be published, and all that a channel wants to know of them."""

import hashlib
from base64 import b64decode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from torchyard.checks.expected import Expected, expected_of, order_in_package
from torchyard.checks.rule import Finding
from torchyard.errors import BuildError, Diagnostic, HostError, PublishError, SelectionError
from torchyard.index.entry import SHARED, Entry, order_of
from torchyard.index.sections import section_for
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.package.contents import Contents
from torchyard.package.formats import format_named, suffixes
from torchyard.package.read import read_package
from torchyard.package.zip.writer import DEBUG

Grouping = Literal["compute", "compute-blas"]
"""What a variant of a channel is called after."""

PROVENANCE = ".provenance"
METADATA = ".metadata"

_CHUNK = 1 << 20


class FileDigests(NamedTuple):
    """Of the bytes of a file."""

    sha256: str
    md5: str
    size: int


Findings = tuple[Finding, ...]


class Package(NamedTuple):
    """A file, the part of a channel that it belongs to, and all that is to be said of it there."""

    path: Path
    part: str
    entry: Entry
    name: str
    """As others ask for it: normalised for a wheel, as it is for a conda package."""
    requires: tuple[str, ...]
    """The names of all that it asks for, also by its extras; virtual conda packages aside.

    What it wants from a certain place is named with it: `demo @ https://…`, `conda-forge::demo`.
    """
    findings: Findings
    """What is wrong with it."""
    metadata: bytes = b""
    provenance: bytes = b""


Judge = Callable[[str, Contents], Findings]
"""Returns the findings for a package, given its sha256 and its contents."""


def trust(_sha256: str, _contents: Contents) -> Findings:
    """Find nothing wrong with any package."""
    return ()


def read_staged(
    paths: Iterable[Path],
    grouping: Grouping,
    now: str,
    judge: Judge = trust,
    read: Callable[[Path], Contents] = read_package,
) -> list[Package]:
    """Read all packages among files and below directories, one after the other.

    One that lies in two places is taken once. Raises whatever makes some no packages at all.
    """
    packages: dict[tuple[str, ...], Package] = {}
    wrong: list[Diagnostic] = []
    for path in find_packages(paths):
        try:
            digests = digests_of(path)
            contents = read(path)
            entry = _entry(contents, digests, grouping, now)
            findings = judge(entry.sha256, contents)
            package = _package(path, contents, entry, findings, digests.md5)
            key = (package.part, *order_of(entry), entry.sha256)
            packages.setdefault(key, package)
        except (BuildError, PublishError) as error:  # it is broken, or nothing for a channel
            wrong += error.diagnostics
    if wrong:
        raise PublishError.of(wrong)
    return list(packages.values())


def find_packages(paths: Iterable[Path]) -> list[Path]:
    """Package files, each once; archives with debug information are for nobody to install."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            ends = suffixes()
            below = sorted(p for p in path.rglob("*") if p.name.endswith(ends) and p.is_file())
            found.update((p, None) for p in below if not p.name.endswith(DEBUG))
        elif path.is_file():
            format_named(path.name)
            found[path] = None
        else:
            msg = f"there is no `{path}`"
            raise SelectionError(msg, hint="name packages, or directories that have some")
    return list(found)


def digests_of(path: Path) -> FileDigests:
    """Read a file once."""
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    size = 0
    try:
        with path.open("rb") as file:
            while piece := file.read(_CHUNK):
                sha256.update(piece)
                md5.update(piece)
                size += len(piece)
    except OSError as error:
        msg = f"`{path}` can't be read: {error.strerror}"
        raise HostError(msg, hint="check its name and your permissions") from error
    return FileDigests(sha256.hexdigest(), md5.hexdigest(), size)


def _entry(contents: Contents, digests: FileDigests, grouping: Grouping, now: str) -> Entry:
    """What can be said of a package of any kind."""
    expected, order = expected_of(contents), order_in_package(contents)
    return Entry(
        file=contents.file_name,
        version=expected.version,
        variant=_variant(expected, order, grouping),
        sha256=digests.sha256,
        size=digests.size,
        uploaded=now,
        cell=order.task.id.partition(":")[2] if order else "",
        commit=order.commit if order and _has_source(order) else "",
    )


def _package(path: Path, contents: Contents, entry: Entry, findings: Findings, md5: str) -> Package:
    section = section_for(contents.format)
    staged = section.stage(path, contents, entry, md5, _ordered_project(contents))
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


def _ordered_project(contents: Contents) -> str:
    """The project that a package's order names; empty without one, or if no plan would write it."""
    order = order_in_package(contents)
    try:
        return order.task.facts["name"] if order else ""
    except ValueError:
        return ""


def _has_source(order: JobSpec) -> bool:
    return any(task.stage is Stage.SOURCE for task in order.tasks)


def _variant(expected: Expected, order: JobSpec | None, grouping: Grouping) -> str:
    """The variant that a package is for; one that says nothing of a compute fits all."""
    if not expected.compute:
        return SHARED
    blas = order.task.facts.get("variant", "") if order and grouping == "compute-blas" else ""
    return f"{expected.compute}-{blas}" if blas else expected.compute


class _Envelope(msgspec.Struct):
    statement: str
    signature: str


class _Attestation(msgspec.Struct):
    version: Literal[1]
    verification_material: dict[str, msgspec.Raw]
    envelope: _Envelope


class _Publisher(msgspec.Struct):
    kind: str


class _Bundle(msgspec.Struct):
    publisher: _Publisher
    attestations: list[_Attestation]


class _Provenance(msgspec.Struct):
    version: Literal[1]
    attestation_bundles: list[_Bundle]


class _Named(msgspec.Struct):
    digest: dict[str, str]


class _Statement(msgspec.Struct):
    subject: list[_Named]


_PROVENANCE = msgspec.json.Decoder(_Provenance)
_STATEMENT = msgspec.json.Decoder(_Statement)


def _provenance(path: Path, sha256: str) -> bytes:
    """What is beside a wheel as PEP 740 has it, if it speaks of this wheel; else nothing."""
    place = path.with_name(path.name + PROVENANCE)
    if not place.is_file():
        return b""
    checked = checked_provenance(place.name, place.read_bytes(), sha256)
    if not checked:
        msg = f"`{place.name}` has no attestation"
        raise PublishError(msg, hint="write it anew, or take it away")
    return checked


def checked_provenance(name: str, data: bytes, sha256: str) -> bytes:
    """Return a provenance as PEP 740 has it, which is about the file with this digest.

    One without any attestation proves nothing, and is returned as none.
    """
    hint = "write it anew, or take it away"
    try:
        found = _PROVENANCE.decode(data)
        statements = [
            _STATEMENT.decode(b64decode(attestation.envelope.statement))
            for bundle in found.attestation_bundles
            for attestation in bundle.attestations
        ]
    except ValueError as error:  # msgspec's and base64's own errors are of this kind
        msg = f"`{name}` is no provenance as PEP 740 has it: {error}"
        raise PublishError(msg, hint=hint) from error
    for statement in statements:
        if all(named.digest.get("sha256") != sha256 for named in statement.subject):
            msg = f"`{name}` speaks of another file than the one it is beside"
            raise PublishError(msg, hint=hint)
    return data if statements else b""
