"""Reading the directory of a zip archive, and mistrusting it.

A zip archive says most things twice: in front of each member, and in the directory at its end.
Programs differ in which of the two they believe, and in what they make of bytes that neither
speaks of. So whatever contradicts itself or could be read in two ways is a fault. Nothing here
raises for what is in the file; a member whose bytes can't be trusted to be its own is not `sound`.
"""

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from torchyard.package.contents import Fault, FaultKind
from torchyard.package.limits import LIMITS, Faults, Limits
from torchyard.package.zip_end import End, find_end
from torchyard.package.zip_extra import large_numbers
from torchyard.package.zip_names import check_names, decoded

STORED, DEFLATED = 0, 8

_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_DESCRIPTOR, _PATCH = 0x8, 0x20
_UNIX = 3


class Entry(NamedTuple):
    """A member: what the directory says of it, and where its bytes are.

    `header` is where its own header begins, `data` where its stored bytes do, and `end` where its
    record does end, with the descriptor that may follow the bytes.
    """

    name: str
    raw_name: bytes
    method: int
    flags: int
    crc: int
    stored: int
    size: int
    header: int
    data: int
    end: int
    time: int
    date: int
    made_by: int
    internal: int
    external: int
    extra: bytes
    comment: bytes
    sound: bool

    @property
    def mode(self) -> int:
        """The mode of Unix; 0 if the archive was made elsewhere."""
        return self.external >> 16 if self.made_by >> 8 == _UNIX else 0


class Directory(NamedTuple):
    """All members in the order of the directory, which begins at `start`; and what is wrong."""

    entries: tuple[Entry, ...]
    start: int
    comment: bytes
    faults: tuple[Fault, ...]


class _Row(NamedTuple):
    """A member as the directory has it."""

    name: str
    raw_name: bytes
    made_by: int
    flags: int
    method: int
    time: int
    date: int
    crc: int
    stored: int
    size: int
    header: int
    internal: int
    external: int
    extra: bytes
    comment: bytes


def read_directory(file: BinaryIO, limits: Limits = LIMITS) -> Directory:
    """Read the directory, and compare all of it with the members' own headers."""
    faults = Faults(limits.faults)
    handle = file.fileno()
    length = os.fstat(handle).st_size
    end = find_end(handle, length, faults)
    if end is None:
        return Directory((), length, b"", faults.all())
    if end.size > limits.directory:
        what = f"the directory takes {end.size} bytes, more than any package needs"
        faults.add(FaultKind.BOMB, "", what)
        return Directory((), end.start, end.comment, faults.all())
    rows = list(_rows(os.pread(handle, end.size, end.start), end, faults))
    check_names([row.name for row in rows], faults)
    entries = tuple(_entry(handle, row, end, faults) for row in rows)
    entries = _placed(entries, end, faults)
    return Directory(entries, end.start, end.comment, faults.all())


def _rows(data: bytes, end: End, faults: Faults) -> Iterator[_Row]:
    """Read the directory row by row, up to the first that is none."""
    place = count = 0
    while place < len(data):
        if place + _CENTRAL.size > len(data) or data[place : place + 4] != b"PK\x01\x02":
            what = f"the directory has something else than a member after {count} members"
            faults.add(FaultKind.STRUCTURE, "", what)
            break
        row = _CENTRAL.unpack_from(data, place)
        _, made_by, _, flags, method, time, date, crc, stored, size = row[:10]
        name_size, extra_size, comment_size, disk, internal, external, header = row[10:]
        start = place + _CENTRAL.size
        place = start + name_size + extra_size + comment_size
        if place > len(data):
            faults.add(FaultKind.STRUCTURE, "", "the directory's last member is cut off")
            break
        raw_name = data[start : start + name_size]
        name = decoded(raw_name, flags, faults)
        extra = data[start + name_size : start + name_size + extra_size]
        comment = data[start + name_size + extra_size : place]
        if extra:
            numbers = (size, stored, header)
            size, stored, header = large_numbers(extra, numbers, name, faults, strict=True)
        if disk:
            faults.add(FaultKind.STRUCTURE, name, f"is said to be on another disk, {disk}")
        count += 1
        numbers = (crc, stored, size, header + end.shift, internal, external)
        yield _Row(name, raw_name, made_by, flags, method, time, date, *numbers, extra, comment)
    if count != end.count:
        what = f"the directory has {count} members, and the archive's end says {end.count}"
        faults.add(FaultKind.STRUCTURE, "", what)


def _entry(handle: int, row: _Row, end: End, faults: Faults) -> Entry:
    """Compare a member's row with its own header."""

    def fault(what: str) -> bool:
        faults.add(FaultKind.STRUCTURE, row.name, what)
        return False

    data, sound = row.header, True
    if not 0 <= row.header <= end.start - _LOCAL.size:
        sound = fault(f"is said to begin at {row.header}, outside of the archive's data")
    else:
        head = os.pread(handle, _LOCAL.size + len(row.raw_name) + 64, row.header)
        if head[:4] != b"PK\x03\x04" or len(head) < _LOCAL.size:
            sound = fault("does not begin with a header of its own")
        else:
            data = _compare(handle, head, row, faults)
    if row.flags & _ENCRYPTED:
        sound = fault("is encrypted")
    elif row.flags & _PATCH:
        sound = fault("is a patch")
    elif row.method not in (STORED, DEFLATED):
        sound = fault(f"is packed by method {row.method}, which installers do not know")
    elif row.method == STORED and row.stored != row.size:
        sound = fault(f"is stored as it is, but as {row.stored} bytes instead of {row.size}")
    if sound and data + row.stored > end.start:
        sound = fault("goes on beyond the archive's data")
    if row.name.endswith("/") and row.size:
        sound = fault(f"is a directory, but holds {row.size} bytes")
    last = data + row.stored
    if sound and row.flags & _DESCRIPTOR:
        last += _descriptor(os.pread(handle, 24, last), row, faults)
    return Entry(
        name=row.name,
        raw_name=row.raw_name,
        method=row.method,
        flags=row.flags,
        crc=row.crc,
        stored=row.stored,
        size=row.size,
        header=row.header,
        data=data,
        end=last,
        time=row.time,
        date=row.date,
        made_by=row.made_by,
        internal=row.internal,
        external=row.external,
        extra=row.extra,
        comment=row.comment,
        sound=sound,
    )


def _compare(handle: int, head: bytes, row: _Row, faults: Faults) -> int:
    """Compare a member's header with the directory, and tell where its data begin."""
    _, _, flags, method, _, _, crc, stored, size, name_size, extra_size = _LOCAL.unpack_from(head)
    length = _LOCAL.size + name_size + extra_size
    if length > len(head):
        head = os.pread(handle, length, row.header)
    name = head[_LOCAL.size : _LOCAL.size + name_size]
    if extra_size:
        extra = head[_LOCAL.size + name_size : length]
        numbers = (size, stored, 0)
        size, stored, _ = large_numbers(extra, numbers, row.name, faults, strict=False)
    pairs: list[tuple[str, int | bytes, int | bytes]] = [
        ("name", name, row.raw_name),
        ("method", method, row.method),
        ("flags", flags, row.flags),
    ]
    later = flags & _DESCRIPTOR and not (crc or stored or size)
    if not later:
        pairs += [("CRC", crc, row.crc), ("stored size", stored, row.stored)]
        pairs += [("size", size, row.size)]
    for what, own, listed in pairs:
        if own != listed:
            told = f"has the {what} {own!r} in its own header, and {listed!r} in the directory"
            faults.add(FaultKind.STRUCTURE, row.name, told)
    return row.header + length


def _descriptor(data: bytes, row: _Row, faults: Faults) -> int:
    """Find out how long the numbers that follow a member's data are; all four ways are in use."""
    wanted = (row.crc, row.stored, row.size)
    for prefix in (b"PK\x07\x08", b""):
        for shape in ("<III", "<IQQ"):
            length = len(prefix) + struct.calcsize(shape)
            if not data.startswith(prefix) or len(data) < length:
                continue
            if struct.unpack_from(shape, data, len(prefix)) == wanted:
                return length
    what = "is followed by other numbers than the directory has for it"
    faults.add(FaultKind.STRUCTURE, row.name, what)
    return 0


def _placed(entries: tuple[Entry, ...], end: End, faults: Faults) -> tuple[Entry, ...]:
    """Check that members lie one after another, in order, with nothing before, between or after.

    One that begins inside of another is not sound: read both, and few bytes give very many.
    """
    order = sorted(range(len(entries)), key=lambda index: entries[index].header)
    if order != list(range(len(entries))):
        what = "the members lie in another order than the directory has them"
        faults.add(FaultKind.STRUCTURE, "", what)
    found = list(entries)
    place = end.shift
    for index in order:
        entry = entries[index]
        if entry.header > place:
            what = f"{entry.header - place} bytes in front of it belong to no member"
            faults.add(FaultKind.STRUCTURE, entry.name, what)
        elif entry.header < place:
            faults.add(FaultKind.STRUCTURE, entry.name, "overlaps with another member")
            found[index] = entry._replace(sound=False)
        place = max(place, entry.end)
    if place < end.start:
        what = f"{end.start - place} bytes in front of the directory belong to no member"
        faults.add(FaultKind.STRUCTURE, "", what)
    return tuple(found)
