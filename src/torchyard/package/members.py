"""Analyse the members of a package in any archive."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256

import deflate
import msgspec

from torchyard.model.job_spec import SPEC_FILE
from torchyard.package.contents import Binary, FaultKind, Oddity, PackageFile
from torchyard.package.device.scan import DeviceScan, is_likely_in, may_be_in
from torchyard.package.elf.image import DAMAGED, MAGIC
from torchyard.package.elf.stream import ElfStream, NotKept, Part
from torchyard.package.limits import Faults, Limits
from torchyard.package.macho_pe.stream import ForeignStream, is_foreign
from torchyard.package.sbom.component import SBOM_FILE

_KEPT = re.compile(
    r".*\.(cmake|pc|la|pth)|_?version\.py|.*config.*\.py|build-version|build-hash|"
    f"{re.escape(SPEC_FILE)}|{re.escape(SBOM_FILE)}"
)
_KEPT_FOLDERS = ("info/", "etc/conda/")
_MOST_PASSES = 8
_AROUND, _MOST_AROUND = 1 << 20, 8 << 20
_START = 4096
_LONGEST_NAME = 4096
"""The limit of most systems; searching longer names would take seconds."""

Again = Callable[[], Iterable[bytes]]
"""A function that reads the pieces of a member again."""


def with_start(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes, with a first piece long enough to detect the file type."""
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= _START:
            break
    if start:
        yield start
    yield from pieces


def is_kept(name: str) -> bool:
    """Return whether a file is about the package, or about compiling against it."""
    if len(name) >= _LONGEST_NAME:
        return False
    if name.startswith(_KEPT_FOLDERS) or ".dist-info/" in name:
        return True
    return _KEPT.fullmatch(name[name.rfind("/") + 1 :]) is not None


def is_plain(name: str, start: bytes | bytearray) -> bool:
    """Return whether only the digest of a file matters, by its name and first bytes."""
    return not (start.startswith(MAGIC) or is_foreign(start) or is_kept(name))


class FoundMembers:
    """Collects the members of a package, and its faults."""

    def __init__(self, limits: Limits, faults: Faults) -> None:
        self.limits = limits
        self.faults = faults
        self.files: dict[str, PackageFile] = {}
        self.texts: dict[str, bytes] = {}
        self.oddities: list[Oddity] = []
        self._texts = self._tables = 0

    def keep(self, name: str, content: bytes) -> None:
        """Keep a member's text, unless the limit is reached."""
        if self._texts + len(content) > self.limits.texts:
            self.faults.add(FaultKind.BOMB, name, "exceeds the total size of kept texts")
            return
        self._texts += len(content)
        self.texts[name] = content

    def check_link(self, name: str, target: str) -> None:
        """Report a link that leads out of the package."""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if path.startswith(("/", "../")) or path == "..":
            what = f"is a link to `{target}`, outside of the package"
            self.faults.add(FaultKind.NAME, name, what)

    def binary(self, name: str, stream: ElfStream | ForeignStream, again: Again) -> Binary | None:
        """Return the parsed program or library after its last piece; None if it is damaged."""
        try:
            binary = (
                stream.binary() if isinstance(stream, ForeignStream) else self._elf(stream, again)
            )
        except DAMAGED as error:
            self.faults.add(FaultKind.BINARY, name, f"is damaged: {error}")
            return None
        self._tables += len(binary.exports) + len(binary.imports)
        if self._tables > self.limits.tables:
            self.faults.add(FaultKind.BOMB, name, "exceeds the limit of symbols in a package")
            return None
        return binary

    def _elf(self, stream: ElfStream, again: Again) -> Binary:
        """Read an ELF file; read it again if it may have unscanned device code."""
        binary = self.whole_elf(stream, again)
        if stream.searched or not may_be_in(binary.sections, binary.needed):
            return binary
        scan = DeviceScan()
        for piece in again():
            scan.feed(piece)
        return msgspec.structs.replace(binary, device=scan.found())

    def whole_elf(self, stream: ElfStream, again: Again) -> Binary:
        """Read an ELF file; read it again if parts are missing."""
        wanted: list[Part] = []
        for number in range(_MOST_PASSES):
            try:
                return stream.binary()
            except NotKept as error:
                wanted.append(_widened(error.part, number, stream.size))
            stream = ElfStream(stream.size, self.limits, tuple(wanted), searched=stream.searched)
            for piece in again():
                stream.feed(piece)
        msg = "its parts are too far apart"
        raise ValueError(msg)


def _widened(part: Part, number: int, size: int) -> Part:
    """Return a part with a growing margin, as tables are close to each other."""
    more = min(_AROUND << number, _MOST_AROUND)
    return max(0, part[0] - more), min(size, part[1] + more)


class MemberReader:
    """Reads a member in pieces: its digest, its text, and its kind of binary."""

    __slots__ = ("_found", "_hash", "_name", "_size", "_stream", "_text", "crc", "passed")

    def __init__(self, found: FoundMembers, name: str, size: int) -> None:
        self._found = found
        self._name = name
        self._size = size
        self._hash = sha256()
        self._stream: ElfStream | ForeignStream | None = None
        self._text: list[bytes] | None = None
        self.passed = 0
        self.crc = 0

    def feed(self, piece: bytes | bytearray) -> None:
        if not self.passed:
            self._begin(piece)
        self.passed += len(piece)
        self.crc = deflate.crc32(piece, self.crc)
        self._hash.update(piece)
        if self._stream is not None:
            self._stream.feed(bytes(piece))
        if self._text is not None:
            self._text.append(bytes(piece))

    def _begin(self, piece: bytes | bytearray) -> None:
        limits = self._found.limits
        if piece.startswith(MAGIC):
            self._stream = ElfStream(self._size, limits, searched=is_likely_in(self._name))
        elif is_foreign(piece):
            self._stream = ForeignStream(bytes(piece), self._size, limits)
        if is_kept(self._name) and self._size <= limits.text:
            self._text = []

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def finish(self, again: Again) -> Binary | None:
        """Keep the text after the last piece, and return the program or library, if any."""
        if self._text is not None or (not self._size and is_kept(self._name)):
            self._found.keep(self._name, b"".join(self._text or ()))
        if self._stream is None:
            return None
        return self._found.binary(self._name, self._stream, again)
