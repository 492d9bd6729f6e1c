"""A partly read wheel, such as one on a server.

The zip directory is read first, then METADATA, and the requested libraries. Deflated members can
only be unpacked from their start; of very large ones, the needed parts are near both ends, and the
rest is neither read nor unpacked.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain

import deflate

from torchyard.errors import CheckError
from torchyard.host.remote_file import RemoteFile
from torchyard.package.contents import Binary, is_library
from torchyard.package.elf.image import DAMAGED, MAGIC, Image
from torchyard.package.elf.stream import ElfStream
from torchyard.package.elf.symbols import exported_names, split_names, symbol_names
from torchyard.package.limits import LIMITS, Faults
from torchyard.package.macho_pe.stream import ForeignStream, is_foreign
from torchyard.package.members import FoundMembers, with_start
from torchyard.package.zip.directory import ZipEntry, find_data, list_members
from torchyard.package.zip.inflate import BadDataError, pieces
from torchyard.package.zip.parts import MemberParts, OutOfReachError

_ABOUT = "METADATA"
_METADATA = re.compile(rf"[^/]+\.dist-info/{_ABOUT}")
_LARGE = 16 << 20
"""Stored bytes of a member above which only parts of it are read."""


_LONGEST = 1000


class WheelParts:
    """A wheel read by parts. Unreadable data raises CheckError."""

    def __init__(self, file: RemoteFile) -> None:
        self.name = file.name
        self._read = file.read
        self._size = file.size
        directory = list_members(file.read, file.size)
        for fault in directory.faults:
            raise self._fault(fault.member, fault.what)
        self.members = {entry.name: entry for entry in directory.entries}

    @cached_property
    def metadata(self) -> bytes:
        """The text of METADATA."""
        for name in filter(_METADATA.fullmatch, self.members):
            entry = self.members[name]
            if entry.size <= LIMITS.text:
                return b"".join(self._pieces(self._found(entry)))
        raise self._fault(_ABOUT, "is missing or too large")

    def libraries(self) -> list[str]:
        """Return the names of the members that are shared libraries by their names."""
        return [name for name in self.members if is_library(name)]

    def stored(self, name: str) -> int:
        """Return the approximate number of bytes to read of a library."""
        return min(self.members[name].stored, _LARGE)

    def is_small(self, name: str) -> bool:
        """Return whether a library is read completely."""
        return self.members[name].stored <= _LARGE

    def binary(self, name: str) -> Binary | None:
        """Return the loader's view of a library; None if it is not a library."""
        entry = self._found(self.members[name])
        if not self.is_small(name):
            try:
                return self._partial(entry)
            except (OutOfReachError, BadDataError, *DAMAGED):
                pass  # its parts are in the middle
        return self._whole(entry)

    def exports(self, name: str) -> Iterable[bytes]:
        """Return the symbols that a library exports."""
        entry = self._found(self.members[name])
        if not self.is_small(name):
            try:
                return exported_names(Image(MemberParts(self._read, entry).read, entry.size))
            except (OutOfReachError, BadDataError, *DAMAGED):
                pass
        binary = self._whole(entry)
        return split_names(binary.exports) if binary else ()

    def search(self, name: str, pattern: re.Pattern[bytes]) -> str:
        """Return the first group of a pattern's first match in a member, or "".

        The member is read up to the match, which may have up to a thousand bytes.
        """
        kept = b""
        for piece in self._pieces(self._found(self.members[name])):
            kept = kept[-_LONGEST:] + piece
            if found := pattern.search(kept):
                return found[1].decode(errors="replace")
        return ""

    def _found(self, entry: ZipEntry) -> ZipEntry:
        found = find_data(self._read, entry, self._size)
        if not found.sound or found.size > LIMITS.most(found.stored):
            raise self._fault(entry.name, "contradicts the archive's directory")
        return found

    def _partial(self, entry: ZipEntry) -> Binary | None:
        parts = MemberParts(self._read, entry)
        if parts.read(0, len(MAGIC)) != MAGIC:
            return None
        image = Image(parts.read, entry.size)
        loaded, names = image.loaded(), symbol_names(image, LIMITS.table)
        return Binary(format="elf", machine=image.machine, **names._asdict(), **loaded._asdict())

    def _whole(self, entry: ZipEntry) -> Binary | None:
        try:
            parts = with_start(self._pieces(entry))
            start = next(parts, b"")
            stream: ElfStream | ForeignStream
            if start.startswith(MAGIC):
                stream = ElfStream(entry.size, LIMITS, searched=False)
            elif is_foreign(start):
                stream = ForeignStream(start, entry.size, LIMITS)
            else:
                return None
            for piece in chain([start], parts):
                stream.feed(piece)
            if isinstance(stream, ForeignStream):
                return stream.binary()
            found = FoundMembers(LIMITS, Faults())
            return found.whole_elf(stream, lambda: with_start(self._pieces(entry)))
        except DAMAGED as error:
            raise self._fault(entry.name, f"is damaged: {error}") from error

    def _pieces(self, entry: ZipEntry) -> Iterator[bytes]:
        size = crc = 0
        try:
            for piece in pieces(self._read, entry):
                size, crc = size + len(piece), deflate.crc32(piece, crc)
                yield piece
        except BadDataError:
            crc = -1
        if (size, crc) != (entry.size, entry.crc):
            raise self._fault(entry.name, "does not match its checksum")

    def _fault(self, member: str, what: str) -> CheckError:
        msg = f"`{self.name}` can't be read: {f'{member} ' if member else ''}{what}"
        return CheckError(msg, hint="`torchyard check` lists all defects of a wheel")
