"""Read the members of wheels and zip archives, in the order of the file."""

import stat
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import BinaryIO, NamedTuple

import deflate

from torchyard.package.contents import Binary, FaultKind, Oddity, PackageFile
from torchyard.package.limits import Faults, Limits
from torchyard.package.members import FoundMembers, MemberReader, is_plain, with_start
from torchyard.package.zip.directory import DESCRIPTOR, ZipEntry, read_directory, reader_of
from torchyard.package.zip.end import ReadAt
from torchyard.package.zip.inflate import (
    SMALL,
    BadDataError,
    Progress,
    ignore_progress,
    pieces,
    whole,
)

_LONGEST_TARGET = 4096


def read_zip(file: BinaryIO, limits: Limits, progress: Progress, *, links: bool) -> FoundMembers:
    """Read all members; links are a fault unless allowed."""
    directory = read_directory(file, limits)
    found = FoundMembers(limits, Faults(limits.faults, directory.faults))
    found.oddities += _oddities(directory.entries)
    reader = _Reader(reader_of(file), found, progress, links)
    for entry in sorted(directory.entries, key=lambda entry: entry.header):
        if not entry.name.endswith("/"):
            found.files[entry.name] = reader.file(entry)
    return found


def _oddities(entries: Iterable[ZipEntry]) -> Iterator[Oddity]:
    for entry in entries:
        if entry.flags & DESCRIPTOR:
            yield Oddity(entry.name, "is followed by a data descriptor")
        if entry.comment:
            yield Oddity(entry.name, "has a comment in the directory")


class Learnt(NamedTuple):
    """The analysis of a member's content."""

    digest: str = ""
    binary: Binary | None = None


NOTHING = Learnt()


class _Reader(NamedTuple):
    """Reads the members in order, and collects their faults."""

    read: ReadAt
    found: FoundMembers
    progress: Progress
    links: bool

    def file(self, entry: ZipEntry) -> PackageFile:
        kind = stat.S_IFMT(entry.mode)
        if kind and kind != stat.S_IFREG:
            return self._special(entry, is_link=kind == stat.S_IFLNK)
        digest, binary = self._passed(entry)
        return PackageFile(
            name=entry.name,
            size=entry.size,
            stored=entry.stored,
            digest=digest,
            executable=bool(entry.mode & 0o111),
            binary=binary,
        )

    def _special(self, entry: ZipEntry, *, is_link: bool) -> PackageFile:
        """Return a link, whose target is its content, or report a special file."""
        target = ""
        if not self.links or not is_link or entry.size > _LONGEST_TARGET:
            self._fault(FaultKind.NAME, entry, "is a link or a special file")
        elif self._passed(entry) != NOTHING:
            target = whole(self.read, entry).decode(errors="backslashreplace")
            self.found.check_link(entry.name, target)
        return PackageFile(name=entry.name, size=entry.size, stored=entry.stored, link=target)

    def _passed(self, entry: ZipEntry) -> Learnt:
        """Analyse a member; return None if it contradicts the archive."""
        if not entry.sound or self._is_bomb(entry):
            return NOTHING
        try:
            if entry.size <= SMALL and entry.stored <= SMALL:
                data = whole(self.read, entry)
                self.progress(entry.stored)
                if is_plain(entry.name, data):  # most are
                    return self._plain(entry, data)
                parts: Iterable[bytes | bytearray] = (data,)
            else:
                parts = self._pieces(entry, self.progress)
            member = MemberReader(self.found, entry.name, entry.size)
            for part in parts:
                member.feed(part)
            if not self._is_right(entry, member.passed, member.crc):
                return NOTHING
            return Learnt(member.digest, member.finish(lambda: self._pieces(entry)))
        except BadDataError:  # maybe only on the second pass: the first ignores trailing data
            self._fault(FaultKind.CONTENT, entry, "can't be unpacked: its data is damaged")
            return NOTHING

    def _plain(self, entry: ZipEntry, data: bytes | bytearray) -> Learnt:
        """Analyse a small member with only its digest."""
        if not self._is_right(entry, len(data), deflate.crc32(data)):
            return NOTHING
        return Learnt(sha256(data).hexdigest())

    def _is_right(self, entry: ZipEntry, passed: int, crc: int) -> bool:
        """Return whether a member's unpacked content has the right size and checksum."""
        if passed > entry.size:
            self._fault(FaultKind.BOMB, entry, f"unpacks to more than {entry.size} bytes")
        elif passed < entry.size:
            what = f"unpacks to {passed} bytes instead of {entry.size}"
            self._fault(FaultKind.CONTENT, entry, what)
        elif crc != entry.crc:
            self._fault(FaultKind.CONTENT, entry, "does not match its checksum")
        else:
            return True
        return False

    def _pieces(self, entry: ZipEntry, progress: Progress = ignore_progress) -> Iterator[bytes]:
        return with_start(pieces(self.read, entry, progress))

    def _is_bomb(self, entry: ZipEntry) -> bool:
        if entry.size <= self.found.limits.most(entry.stored):
            return False
        self._fault(FaultKind.BOMB, entry, f"unpacks to {entry.size} bytes, from {entry.stored}")
        return True

    def _fault(self, kind: FaultKind, entry: ZipEntry, what: str) -> None:
        self.found.faults.add(kind, entry.name, what)
