"""Reading the members of wheels and zip archives, one after another as they lie in the file."""

import stat
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from torchyard.package.contents import FaultKind, File
from torchyard.package.inflate import SMALL, BadDataError, Progress, nobody, pieces, whole
from torchyard.package.limits import Faults, Limits
from torchyard.package.members import Found, Member, with_start
from torchyard.package.zip_reader import Entry, read_directory

_LONGEST_TARGET = 4096


def read_zip(file: BinaryIO, name: str, limits: Limits, progress: Progress) -> Found:
    """Read all members. Links are something that wheels must not have."""
    directory = read_directory(file, limits)
    found = Found(limits, Faults(limits.faults, directory.faults))
    if sum(entry.size for entry in directory.entries) > limits.total:
        found.faults.add(FaultKind.BOMB, "", "its members are larger than any package")
        return found
    reader = _Reader(file.fileno(), found, progress, not name.endswith(".whl"))
    for entry in sorted(directory.entries, key=lambda entry: entry.header):
        if not entry.name.endswith("/"):
            found.files[entry.name] = reader.file(entry)
    return found


class _Reader(NamedTuple):
    """Reads one member after another, and collects what is wrong with them."""

    handle: int
    found: Found
    progress: Progress
    links: bool

    def file(self, entry: Entry) -> File:
        kind = stat.S_IFMT(entry.mode)
        if kind and kind != stat.S_IFREG:
            return self._special(entry, is_link=kind == stat.S_IFLNK)
        member = self._passed(entry)
        return File(
            name=entry.name,
            size=entry.size,
            stored=entry.stored,
            digest=member.digest if member else "",
            executable=bool(entry.mode & 0o111),
            binary=member.finish(lambda: with_start(pieces(self.handle, entry)))
            if member
            else None,
        )

    def _special(self, entry: Entry, *, is_link: bool) -> File:
        """A link, whose target is its content; or something that no archive should have."""
        target = ""
        if not self.links or not is_link or entry.size > _LONGEST_TARGET:
            self._fault(FaultKind.NAME, entry, "is a link, or no file at all")
        elif self._passed(entry):
            target = whole(self.handle, entry).decode(errors="backslashreplace")
            self.found.check_link(entry.name, target)
        return File(name=entry.name, size=entry.size, stored=entry.stored, link=target)

    def _passed(self, entry: Entry) -> Member | None:
        """Let a member pass; None if it is not what the archive says."""
        if not entry.sound or self._is_bomb(entry):
            return None
        member = Member(self.found, entry.name, entry.size)
        try:
            if entry.size <= SMALL and entry.stored <= SMALL:
                member.feed(whole(self.handle, entry))
                self.progress(entry.stored)
            else:
                for piece in self._pieces(entry, self.progress):
                    member.feed(piece)
        except BadDataError:
            self._fault(FaultKind.CONTENT, entry, "can't be unpacked: its data are damaged")
            return None
        if member.passed > entry.size:
            self._fault(FaultKind.BOMB, entry, f"unpacks to more than {entry.size} bytes")
        elif member.passed < entry.size:
            what = f"unpacks to {member.passed} bytes instead of {entry.size}"
            self._fault(FaultKind.CONTENT, entry, what)
        elif member.crc != entry.crc:
            self._fault(FaultKind.CONTENT, entry, "is not what was packed: its CRC differs")
        else:
            return member
        return None

    def _pieces(self, entry: Entry, progress: Progress = nobody) -> Iterator[bytes]:
        return with_start(pieces(self.handle, entry, progress))

    def _is_bomb(self, entry: Entry) -> bool:
        if entry.size <= self.found.limits.most(entry.stored):
            return False
        self._fault(FaultKind.BOMB, entry, f"unpacks to {entry.size} bytes, from {entry.stored}")
        return True

    def _fault(self, kind: FaultKind, entry: Entry, what: str) -> None:
        self.found.faults.add(kind, entry.name, what)
