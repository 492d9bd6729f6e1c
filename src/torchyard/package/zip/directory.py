"""Read and verify the central directory of a zip archive.

A zip archive has most data twice: in front of each member, and in the directory at its end.
Programs differ in which one they use, and in how they handle bytes in neither. So contradictions
and ambiguities are faults. Malformed archives never raise; a member whose bytes may not be its own
is not `sound`.
"""

import os
import struct
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO, NamedTuple

from torchyard.package.contents import Fault, FaultKind
from torchyard.package.limits import LIMITS, Faults, Limits
from torchyard.package.zip.end import End, ReadAt, find_end
from torchyard.package.zip.extra import large_numbers
from torchyard.package.zip.names import check_member_names, decoded

STORED, DEFLATED = 0, 8

_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_SIZES = struct.Struct("<HHH")
_MAX_32 = 0xFFFF_FFFF
_ENCRYPTED = 0x1 | 0x40 | 0x2000
DESCRIPTOR, _PATCH = 0x8, 0x20


class ZipEntry(NamedTuple):
    """A member: its row in the directory, and the offsets of its bytes.

    `header` is the offset of its own header, `data` that of its stored bytes, and `end` that of the
    end of its record, with the descriptor that may follow the bytes. `row` is its unchanged row in
    the directory. `mode` is that of Unix, whatever system the archive names, as in installers; 0 if
    there is none.
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
    mode: int
    extra: bytes
    comment: bytes
    row: bytes
    sound: bool


class Directory(NamedTuple):
    """All members in the order of the directory, the archive's comment, and its faults."""

    entries: tuple[ZipEntry, ...]
    comment: bytes
    faults: tuple[Fault, ...]


def reader_of(file: BinaryIO) -> ReadAt:
    """Return a function that reads parts of an open file."""
    return partial(os.pread, file.fileno())


def read_directory(file: BinaryIO, limits: Limits = LIMITS) -> Directory:
    """Read the directory, and compare it with the members' own headers."""
    faults = Faults(limits.faults)
    read = reader_of(file)
    end = find_end(read, os.fstat(file.fileno()).st_size, faults)
    if end is None:
        return Directory((), b"", faults.all())
    listed = _listed(read, end, limits, faults)
    if listed is None:
        return Directory((), end.comment, faults.all())
    entries = [_with_header(read, entry, end, faults) for entry in listed]
    check_member_names([entry.name for entry in entries], faults)
    return Directory(_placed(entries, end, faults), end.comment, faults.all())


def list_members(read: ReadAt, length: int, limits: Limits = LIMITS) -> Directory:
    """Read only the directory of an archive, which may be remote, without headers of members.

    `find_data` reads a member's header to find its bytes.
    """
    faults = Faults(limits.faults)
    end = find_end(read, length, faults)
    if end is None:
        return Directory((), b"", faults.all())
    entries = _listed(read, end, limits, faults) or ()
    return Directory(tuple(entries), end.comment, faults.all())


def find_data(read: ReadAt, entry: ZipEntry, length: int) -> ZipEntry:
    """Return a listed member with the offset of its bytes; not `sound` if its header differs."""
    faults = Faults()
    found = _with_header(read, entry, End(length, 0, 0, 0, b""), faults)
    return found._replace(sound=found.sound and not faults.all())


def _listed(read: ReadAt, end: End, limits: Limits, faults: Faults) -> list[ZipEntry] | None:
    """Return the members of the directory; None if it is larger than any package's."""
    if end.size > limits.directory:
        what = f"the directory has {end.size} bytes, more than any package needs"
        faults.add(FaultKind.BOMB, "", what)
        return None
    data = read(end.size, end.start)
    entries = [_entry(row, end, faults) for row in _rows(data, end, limits, faults)]
    if sum(entry.size for entry in entries) > limits.total:
        faults.add(FaultKind.BOMB, "", "its members are larger than any package")
        return None
    return entries


def _rows(data: bytes, end: End, limits: Limits, faults: Faults) -> Iterator[bytes]:
    """Yield the rows of the directory, up to the first malformed one."""
    offset = count = 0
    while offset < len(data):
        if data[offset : offset + 4] != b"PK\x01\x02" or offset + _CENTRAL.size > len(data):
            what = f"the directory has other data than a member after {count} members"
            faults.add(FaultKind.STRUCTURE, "", what)
            break
        name, extra, comment = _SIZES.unpack_from(data, offset + 28)
        start, offset = offset, offset + _CENTRAL.size + name + extra + comment
        if offset > len(data):
            faults.add(FaultKind.STRUCTURE, "", "the directory's last member is cut off")
            break
        if count == limits.members:
            faults.add(FaultKind.BOMB, "", f"the archive has more than {count} members")
            break
        count += 1
        yield data[start:offset]
    if count != end.members:
        what = f"the directory has {count} members, but the archive's end declares {end.members}"
        faults.add(FaultKind.STRUCTURE, "", what)


def _entry(row: bytes, end: End, faults: Faults) -> ZipEntry:
    """Return a member from its row; its bytes follow its header, which is not read here."""
    _, _, _, flags, method, _, _, crc, stored, size, *more = _CENTRAL.unpack_from(row)
    name_size, extra_size, _, disk, _, external, header = more
    name_end = _CENTRAL.size + name_size
    raw_name = row[_CENTRAL.size : name_end]
    name = decoded(raw_name, flags, faults)
    extra, comment = row[name_end : name_end + extra_size], row[name_end + extra_size :]
    if extra or _MAX_32 in (size, stored, header):
        numbers = (size, stored, header)
        size, stored, header = large_numbers(extra, numbers, name, faults, strict=True)
    if disk:
        faults.add(FaultKind.STRUCTURE, name, f"is declared to be on another disk, {disk}")
    header += end.shift
    begin = header + _LOCAL.size + name_size
    return ZipEntry(
        name,
        raw_name,
        method,
        flags,
        crc,
        stored,
        size,
        header,
        begin,
        begin + stored,
        external >> 16,
        extra,
        comment,
        row,
        sound=True,
    )


def _with_header(read: ReadAt, entry: ZipEntry, end: End, faults: Faults) -> ZipEntry:
    """Compare a member with its own header, and find its bytes."""
    size = _LOCAL.size + len(entry.raw_name) + 64
    head = read(size, entry.header) if entry.header < end.start else b""
    plain = b"PK\x03\x04" + entry.row[6:30] + b"\0\0" + entry.raw_name
    if head[: len(plain)] != plain:
        entry = _compared(read, head, entry, faults)
    return _judged(read, entry, end, faults)


def _compared(read: ReadAt, head: bytes, entry: ZipEntry, faults: Faults) -> ZipEntry:
    """Compare a member's header with the directory, and find the start of its data."""
    if head[:4] != b"PK\x03\x04" or len(head) < _LOCAL.size:
        what = f"does not start with its own header, at {entry.header}"
        faults.add(FaultKind.STRUCTURE, entry.name, what)
        return entry._replace(data=entry.header, end=entry.header + entry.stored, sound=False)
    _, _, flags, method, _, _, crc, stored, size, name_size, extra_size = _LOCAL.unpack_from(head)
    length = _LOCAL.size + name_size + extra_size
    if length > len(head):
        head = read(length, entry.header)
    name = head[_LOCAL.size : _LOCAL.size + name_size]
    if extra_size:
        extra = head[_LOCAL.size + name_size : length]
        numbers = (size, stored, 0)
        size, stored, _ = large_numbers(extra, numbers, entry.name, faults, strict=False)
    pairs: list[tuple[str, int | bytes, int | bytes]] = [
        ("name", name, entry.raw_name),
        ("method", method, entry.method),
        ("flags", flags, entry.flags),
    ]
    if not flags & DESCRIPTOR or crc or stored or size:
        pairs += [("CRC", crc, entry.crc), ("stored size", stored, entry.stored)]
        pairs += [("size", size, entry.size)]
    for what, local, listed in pairs:
        if local != listed:
            fault = f"has the {what} {local!r} in its own header, but {listed!r} in the directory"
            faults.add(FaultKind.STRUCTURE, entry.name, fault)
    data = entry.header + length
    return entry._replace(data=data, end=data + entry.stored)


def _judged(read: ReadAt, entry: ZipEntry, end: End, faults: Faults) -> ZipEntry:
    """Check whether a member can be unpacked, and find the end of its record."""
    what = ""
    if entry.flags & (_ENCRYPTED | _PATCH):
        what = "is encrypted, or a patch"
    elif entry.method not in (STORED, DEFLATED):
        what = f"is compressed by method {entry.method}, which installers do not support"
    elif entry.method == STORED and entry.stored != entry.size:
        what = f"is stored uncompressed, but as {entry.stored} bytes instead of {entry.size}"
    elif entry.end > end.start:
        what = "extends beyond the archive's data"
    elif entry.size and entry.name.endswith("/"):
        what = f"is a directory, but has {entry.size} bytes"
    if what:
        faults.add(FaultKind.STRUCTURE, entry.name, what)
        return entry._replace(end=min(entry.end, end.start), sound=False)
    if entry.flags & DESCRIPTOR and entry.sound:
        length = _descriptor(read(24, entry.end), entry, faults)
        return entry._replace(end=entry.end + length)
    return entry


def _descriptor(data: bytes, entry: ZipEntry, faults: Faults) -> int:
    """Return the size of a member's data descriptor; all four forms are in use.

    Longer forms are tried first: only an empty member's zeros fit both.
    """
    wanted = (entry.crc, entry.stored, entry.size)
    for prefix in (b"PK\x07\x08", b""):
        for shape in ("<IQQ", "<III"):
            length = len(prefix) + struct.calcsize(shape)
            if not data.startswith(prefix) or len(data) < length:
                continue
            if struct.unpack_from(shape, data, len(prefix)) == wanted:
                return length
    what = "is followed by numbers that contradict the directory"
    faults.add(FaultKind.STRUCTURE, entry.name, what)
    return 0


def _placed(entries: list[ZipEntry], end: End, faults: Faults) -> tuple[ZipEntry, ...]:
    """Check that members are stored in order, with nothing before, between or after them.

    A member that starts inside another is not sound: overlapping members make a zip bomb.
    """
    order = sorted(range(len(entries)), key=lambda index: entries[index].header)
    if order != list(range(len(entries))):
        what = "the members are in another order than in the directory"
        faults.add(FaultKind.STRUCTURE, "", what)
    found = list(entries)
    offset = end.shift
    for index in order:
        entry = entries[index]
        if entry.header > offset:
            what = f"{entry.header - offset} bytes in front of it belong to no member"
            faults.add(FaultKind.STRUCTURE, entry.name, what)
        elif entry.header < offset:
            faults.add(FaultKind.STRUCTURE, entry.name, "overlaps with another member")
            found[index] = entry._replace(sound=False)
        offset = max(offset, entry.end)
    if offset < end.start:
        what = f"{end.start - offset} bytes in front of the directory belong to no member"
        faults.add(FaultKind.STRUCTURE, "", what)
    return tuple(found)
