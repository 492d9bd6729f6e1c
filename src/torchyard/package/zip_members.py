"""Reading the members of wheels and zip archives, one after another as they lie in the file."""

import stat
from typing import BinaryIO

from torchyard.package.contents import FaultKind, File
from torchyard.package.inflate import SMALL, BadDataError, pieces, whole
from torchyard.package.limits import Faults, Limits
from torchyard.package.members import Found, Member, Progress
from torchyard.package.zip_reader import Entry, read_directory

_LONGEST_TARGET = 4096


def read_zip(file: BinaryIO, name: str, limits: Limits, progress: Progress) -> Found:
    """Read all members. Links are something that wheels must not have."""
    directory = read_directory(file, limits)
    found = Found(limits, Faults(limits.faults, directory.faults))
    if sum(entry.size for entry in directory.entries) > limits.total:
        found.faults.add(FaultKind.BOMB, "", "its members are larger than any package")
        return found
    links = not name.endswith(".whl")
    handle = file.fileno()
    for entry in sorted(directory.entries, key=lambda entry: entry.header):
        if not entry.name.endswith("/"):
            found.files[entry.name] = _file(handle, entry, found, links=links)
        progress(entry.stored)
    return found


def _file(handle: int, entry: Entry, found: Found, *, links: bool) -> File:
    kind = stat.S_IFMT(entry.mode)
    if kind and kind != stat.S_IFREG:
        return _special(handle, entry, found, links=links and kind == stat.S_IFLNK)
    member = _passed(handle, entry, found)
    return File(
        name=entry.name,
        size=entry.size,
        stored=entry.stored,
        digest=member.digest if member else "",
        executable=bool(entry.mode & 0o111),
        binary=member.finish(lambda: pieces(handle, entry)) if member else None,
    )


def _special(handle: int, entry: Entry, found: Found, *, links: bool) -> File:
    """A link, whose target is its content; or something that no archive should have."""
    target = ""
    if not links or entry.size > _LONGEST_TARGET:
        found.faults.add(FaultKind.NAME, entry.name, "is a link, or no file at all")
    elif _passed(handle, entry, found):
        target = bytes(whole(handle, entry)).decode(errors="backslashreplace")
        found.check_link(entry.name, target)
    return File(name=entry.name, size=entry.size, stored=entry.stored, link=target)


def _passed(handle: int, entry: Entry, found: Found) -> Member | None:
    """Let a member pass; None if it is not what the archive says."""
    if not entry.sound or _is_bomb(entry, found):
        return None
    member = Member(found, entry.name, entry.size)
    try:
        if entry.size <= SMALL and entry.stored <= SMALL:
            member.feed(whole(handle, entry))
        else:
            for piece in pieces(handle, entry):
                member.feed(piece)
    except BadDataError:
        found.faults.add(FaultKind.CONTENT, entry.name, "can't be unpacked: its data are damaged")
        return None
    if member.passed > entry.size:
        found.faults.add(FaultKind.BOMB, entry.name, f"unpacks to more than {entry.size} bytes")
    elif member.passed < entry.size:
        what = f"unpacks to {member.passed} bytes instead of {entry.size}"
        found.faults.add(FaultKind.CONTENT, entry.name, what)
    elif member.crc != entry.crc:
        found.faults.add(FaultKind.CONTENT, entry.name, "is not what was packed: its CRC differs")
    else:
        return member
    return None


def _is_bomb(entry: Entry, found: Found) -> bool:
    limits = found.limits
    if entry.size <= limits.harmless or entry.size <= entry.stored * limits.ratio:
        return False
    what = f"unpacks to {entry.size} bytes, from {entry.stored}"
    found.faults.add(FaultKind.BOMB, entry.name, what)
    return True
