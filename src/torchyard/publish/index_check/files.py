"""The audit of a file: whether it exists and matches the index, and its requirements."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from torchyard.checks.rules import index as rules
from torchyard.errors import BuildError, ElsewhereError, HostError
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import redact_url
from torchyard.index.simple.read import FileLink
from torchyard.model.requirement import parse_requirement
from torchyard.package.wheel.about import read_about
from torchyard.package.wheel.extras import is_excluded
from torchyard.package.wheel.metadata import values
from torchyard.package.wheel.name import is_wheel_name
from torchyard.package.wheel.write import parse_metadata
from torchyard.publish.index_check.findings import IndexHit
from torchyard.publish.staged import METADATA

_LARGEST_SIDECAR = 16 << 20
_STRONG = (
    *("sha256", "sha512", "sha384", "sha224"),
    *("sha3_256", "sha3_512", "sha3_384", "sha3_224", "blake2b", "blake2s"),
)
"""Hashes without known collisions, in order of preference."""

_KNOWN = hashlib.algorithms_guaranteed - {"shake_128", "shake_256"}
"""Hashes that can be compared; the omitted two have no fixed length."""


class ResolverMetadata(NamedTuple):
    """The fields of METADATA that resolvers use."""

    requires: tuple[str, ...]
    requires_python: str
    extras: tuple[str, ...]


class Looked(NamedTuple):
    """The findings on a file, and its METADATA, if readable."""

    hits: tuple[IndexHit, ...]
    facts: ResolverMetadata | None = None


class FileAudit(NamedTuple):
    """Audits files, safely from several threads."""

    fetcher: Fetcher
    site: str
    """The host of the index itself: if it is unreachable, the audit stops."""
    deep: bool

    def look(self, link: FileLink) -> Looked:
        """Compare the listing of a file with the file and its sidecar."""
        found = list(_hash_hits(link))
        try:
            text = self._sidecar(link, found)
            found += self._provenance(link)
            if self.deep:
                text = self._read(link, text, found)
            else:
                found += self._head(link)
        except (ElsewhereError, HostError) as error:
            if urlsplit(link.url).netloc == self.site:
                raise
            found.append(IndexHit(rules.LINK_BROKEN, link.file, str(error)))
            return Looked(tuple(found))
        facts = None if text is None else _facts(text, link, found)
        return Looked(tuple(found), facts)

    def _head(self, link: FileLink) -> Iterator[IndexHit]:
        answer = self.fetcher.head(link.url)
        if not answer.found:
            what = f"{redact_url(link.url)} answers {answer.status}"
            yield IndexHit(rules.LINK_BROKEN, link.file, what)
        elif link.size is not None and answer.size not in (None, link.size):
            what = f"it has {answer.size} bytes, and the page says {link.size}"
            yield IndexHit(rules.SIZE, link.file, what)

    def _provenance(self, link: FileLink) -> Iterator[IndexHit]:
        if link.provenance and not (answer := self.fetcher.head(link.provenance)).found:
            what = f"its provenance, {redact_url(link.provenance)}, answers {answer.status}"
            yield IndexHit(rules.LINK_BROKEN, link.file, what)

    def _sidecar(self, link: FileLink, found: list[IndexHit]) -> bytes | None:
        """Return the METADATA beside a wheel, or None if it does not match the page."""
        if link.metadata is None:
            return None
        answer = self.fetcher.get(f"{link.url}{METADATA}", most=_LARGEST_SIDECAR)
        if not answer.found:
            what = f"the page promises {link.file}{METADATA}, which answers {answer.status}"
            found.append(IndexHit(rules.SIDECAR_MISSING, link.file, what))
            return None
        wrong = wrong_hash(answer.data, link.metadata)
        if wrong:
            what = f"its sidecar does not match the page's {wrong}"
            found.append(IndexHit(rules.SIDECAR_WRONG, link.file, what))
            return None
        return answer.data

    def _read(self, link: FileLink, sidecar: bytes | None, found: list[IndexHit]) -> bytes | None:
        """Read a whole file; return its METADATA, or else that of its sidecar."""
        with TemporaryDirectory(prefix="torchyard-audit-") as folder:
            path = Path(folder, link.file)
            try:
                found += fetched(self.fetcher, link.url, path, link.hashes, link.size)
            except FileNotFoundError:
                found.append(
                    IndexHit(rules.LINK_BROKEN, link.file, f"{redact_url(link.url)} is not there")
                )
                return sidecar
            if not is_wheel_name(link.file):
                return sidecar
            text, fault = read_about(path)
        if fault:
            found.append(IndexHit(rules.PACKAGE, link.file, f"it can't be unpacked: {fault}"))
        if text is not None and sidecar is not None and text != sidecar:
            what = "its sidecar differs from the METADATA in the wheel"
            found.append(IndexHit(rules.SIDECAR_WRONG, link.file, what))
        return text or sidecar


def _hash_hits(link: FileLink) -> Iterator[IndexHit]:
    if weak := weakness(link.hashes):
        yield IndexHit(rules.HASH_MISSING, link.file, f"the page has {weak}")
    if link.metadata is not None and not link.metadata:
        yield IndexHit(rules.HASH_MISSING, link.file, "the page has no hash of its sidecar")


def strong_hash(hashes: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the algorithm and digits of the hash to verify a file with, or None."""
    return next(((kind, hashes[kind]) for kind in _STRONG if kind in hashes), None)


def weakness(hashes: Mapping[str, str]) -> str:
    """Return why hashes prove nothing, or "" if they do."""
    if not hashes:
        return "no hash of it"
    return "" if strong_hash(hashes) else f"only its {', '.join(hashes)}, which can be forged"


def fetched(
    fetcher: Fetcher, url: str, path: Path, hashes: Mapping[str, str], size: int | None
) -> Iterator[IndexHit]:
    """Fetch a file, and yield differences of its size and hash from the listed ones."""
    known = {kind: hashlib.new(kind) for kind in hashes if kind in _KNOWN}
    found = 0
    with path.open("wb") as file:
        for piece in fetcher.pieces(url):
            file.write(piece)
            found += len(piece)
            for digest in known.values():
                digest.update(piece)
            if size is not None and found > size:  # it may never end
                what = f"it has more bytes than the {size} that the index says"
                yield IndexHit(rules.SIZE, path.name, what)
                return
    if size not in (None, found):
        what = f"it has {found} bytes, and the index says {size}"
        yield IndexHit(rules.SIZE, path.name, what)
    for kind, digest in known.items():
        if digest.hexdigest() != hashes[kind]:
            what = f"its {kind} is {digest.hexdigest()}, and the index says {hashes[kind]}"
            yield IndexHit(rules.HASH_WRONG, path.name, what)
            return


def wrong_hash(data: bytes, hashes: Mapping[str, str]) -> str:
    """Return the algorithm of the first mismatching hash, or ""."""
    for kind, digest in hashes.items():
        if kind in _KNOWN and hashlib.new(kind, data).hexdigest() != digest:
            return kind
    return ""


def _facts(text: bytes, link: FileLink, found: list[IndexHit]) -> ResolverMetadata | None:
    try:
        fields, _ = parse_metadata(text.decode())
    except (UnicodeDecodeError, BuildError) as error:
        found.append(IndexHit(rules.SIDECAR_WRONG, link.file, f"METADATA can't be read: {error}"))
        return None
    python = "".join(values(fields, "Requires-Python")[:1])
    found += _python_hits(link, python)
    return ResolverMetadata(
        tuple(sorted(values(fields, "Requires-Dist"))),
        python,
        tuple(sorted(values(fields, "Provides-Extra"))),
    )


def _python_hits(link: FileLink, metadata: str) -> Iterator[IndexHit]:
    page = link.requires_python
    try:
        same = SpecifierSet(page) == SpecifierSet(metadata)
    except InvalidSpecifier as error:
        yield IndexHit(rules.REQUIRES_PYTHON, link.file, f"this is no range of Pythons: {error}")
        return
    if not page and metadata:
        what = f"METADATA says `{metadata}`, and the page nothing"
        yield IndexHit(rules.REQUIRES_PYTHON_NONE, link.file, what)
    elif not same:
        what = f"the page says `{page}`, and METADATA `{metadata}`"
        yield IndexHit(rules.REQUIRES_PYTHON, link.file, what)


def required_names(facts: ResolverMetadata) -> set[str]:
    """Return the projects required by name, except requirements by address or of extras."""
    names: set[str] = set()
    for text in facts.requires:
        try:
            requirement = parse_requirement(text)
        except InvalidRequirement:
            continue  # installers ignore it, too
        if requirement.url is None and not is_excluded(requirement):
            names.add(canonicalize_name(requirement.name))
    return names
