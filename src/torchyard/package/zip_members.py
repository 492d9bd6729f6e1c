"""Reading the members of wheels and zip archives, one after another as they lie in the file."""

import stat
from typing import BinaryIO

from torchyard.package.contents import FaultKind, File
from torchyard.package.inflate import SMALL, BadDataError, pieces, whole
from torchyard.package.limits import Faults, Limits
from torchyard.package.members import Found, Member, Progress
from torchyard.package.zip_reader import Entry, read_directory


def read_zip(file: BinaryIO, name: str, limits: Limits, progress: Progress) -> Found:
    directory = read_directory(file, limits)
    found = Found(limits, Faults(limits.faults, directory.faults))
    handle = file.fileno()
    if sum(entry.size for entry in directory.entries) > limits.total:
        found.faults.add(FaultKind.BOMB, "", "its members are larger than any package")
        return found
    for entry in sorted(directory.entries, key=lambda entry: entry.header):
        if not entry.name.endswith("/"):
            found.files[entry.name] = _file(handle, entry, found)
        progress(entry.stored)
    return found


def _file(handle: int, entry: Entry, found: Found) -> File:
    mode = entry.mode
    file = File(
        name=entry.name, size=entry.size, stored=entry.stored, executable=bool(mode & 0o111)
    )
    if not entry.sound or _is_bomb(entry, found):
        return file
    member = Member(found, entry.name, entry.size)
    try:
        if entry.size <= SMALL and entry.stored <= SMALL:
            content = bytes(whole(handle, entry))
            member.feed(content)
        else:
            for piece in pieces(handle, entry):
                member.feed(piece)
    except BadDataError:
        found.faults.add(FaultKind.CONTENT, entry.name, "can't be unpacked: its data are damaged")
        return file
    if member.passed > entry.size:
        found.faults.add(FaultKind.BOMB, entry.name, f"unpacks to more than {entry.size} bytes")
    elif member.passed < entry.size:
        what = f"unpacks to {member.passed} bytes instead of {entry.size}"
        found.faults.add(FaultKind.CONTENT, entry.name, what)
    elif member.crc != entry.crc:
        found.faults.add(FaultKind.CONTENT, entry.name, "is not what was packed: its CRC differs")
    else:
        binary = member.binary(lambda: pieces(handle, entry))
        return File(
            name=entry.name,
            size=entry.size,
            stored=entry.stored,
            digest=member.digest,
            executable=file.executable,
            binary=binary,
        )
    return file


def _is_bomb(entry: Entry, found: Found) -> bool:
    limits = found.limits
    if entry.size <= limits.harmless or entry.size <= entry.stored * limits.ratio:
        return False
    what = f"unpacks to {entry.size} bytes, from {entry.stored}"
    found.faults.add(FaultKind.BOMB, entry.name, what)
    return True
