"""The end of a zip archive: the record at which readers start."""

import struct
from collections.abc import Callable
from typing import NamedTuple

from torchyard.package.contents import FaultKind
from torchyard.package.limits import Faults

_END = struct.Struct("<4sHHHHIIH")
_LOCATOR = struct.Struct("<4sIQI")
_LARGE_END = struct.Struct("<4sQHHIIQQQQ")
_SIGNATURE = b"PK\x05\x06"
_MAX_16, _MAX_32 = 0xFFFF, 0xFFFF_FFFF

ReadAt = Callable[[int, int], bytes]
"""A function that reads bytes at an offset, like `os.pread`; fewer at the archive's end."""


class End(NamedTuple):
    """The offset and size of the directory, and its declared number of members.

    `shift` is added to all offsets if there is data before the archive.
    """

    start: int
    size: int
    members: int
    shift: int
    comment: bytes


def find_end(read: ReadAt, length: int, faults: Faults) -> End | None:
    """Find the end record, and with it the directory, or return None."""
    reach = min(length, _END.size + _MAX_16)
    tail = read(reach, length - reach)
    offset = _end_offset(tail)
    if offset < 0:
        what = "the archive has no end record: it is cut off, or not a zip archive"
        faults.add(FaultKind.STRUCTURE, "", what)
        return None
    where = length - reach + offset
    members, size, start = _numbers(tail, offset, faults)
    large = _large_end(read, where, faults)
    if large is not None:
        rows = zip((members, size, start), (_MAX_16, _MAX_32, _MAX_32), large.numbers, strict=True)
        for number, most, wide in rows:
            if number not in (most, wide):
                what = f"the archive's end has {number} where its ZIP64 record has {wide}"
                faults.add(FaultKind.STRUCTURE, "", what)
        where = large.offset
        members, size, start = large.numbers
    elif _MAX_32 in (size, start):
        what = "the archive's end refers to a missing ZIP64 record"
        faults.add(FaultKind.STRUCTURE, "", what)
    shift = where - size - start
    if shift < 0:
        what = "the archive is shorter than its end record declares: it is cut off"
        faults.add(FaultKind.STRUCTURE, "", what)
        return None
    if shift:
        what = f"{shift} bytes are before the archive, or between its parts"
        faults.add(FaultKind.STRUCTURE, "", what)
    return End(where - size, size, members, shift, tail[offset + _END.size :])


def _numbers(tail: bytes, offset: int, faults: Faults) -> tuple[int, int, int]:
    """Return the number of members, and the directory's size and offset, from the end record."""
    row = _END.unpack_from(tail, offset)
    _, disk, start_disk, here, members, size, start, comment = row
    after = len(tail) - offset - _END.size
    if after != comment:
        what = f"{after} bytes follow the end record, which declares {comment}"
        faults.add(FaultKind.STRUCTURE, "", what)
    if tail.find(_SIGNATURE, offset + 4) >= 0:
        what = "a second end record follows the first: readers differ in which they use"
        faults.add(FaultKind.STRUCTURE, "", what)
    if disk or start_disk or here != members:
        what = "the archive is declared as one of several parts"
        faults.add(FaultKind.STRUCTURE, "", what)
    return members, size, start


def _end_offset(tail: bytes) -> int:
    """Return the last end record whose comment ends with the file; else the last one."""
    offset = tail.rfind(_SIGNATURE)
    last = -1
    while offset >= 0:
        if offset + _END.size <= len(tail):
            size = int.from_bytes(tail[offset + 20 : offset + 22], "little")
            if offset + _END.size + size == len(tail):
                return offset
            last = max(last, offset)
        offset = tail.rfind(_SIGNATURE, 0, offset + 3)
    return last


class _Large(NamedTuple):
    """The numbers of the ZIP64 record, and its offset."""

    numbers: tuple[int, int, int]
    offset: int


def _large_end(read: ReadAt, where: int, faults: Faults) -> _Large | None:
    """Follow the locator before the end record to the ZIP64 record, if any."""
    if where < _LOCATOR.size:
        return None
    note = read(_LOCATOR.size, where - _LOCATOR.size)
    if note[:4] != b"PK\x06\x07":
        return None
    _, disk, offset, disks = _LOCATOR.unpack(note)
    nearest = where - _LOCATOR.size - _LARGE_END.size
    row = read(_LARGE_END.size, nearest) if nearest >= 0 else b""
    if row[:4] != b"PK\x06\x06" and offset <= max(nearest, 0):
        nearest = offset
        row = read(_LARGE_END.size, nearest)
    if len(row) < _LARGE_END.size or row[:4] != b"PK\x06\x06":
        faults.add(FaultKind.STRUCTURE, "", "the archive's ZIP64 record is at another offset")
        return None
    _, size, _, _, own_disk, start_disk, here, count, length, start = _LARGE_END.unpack(row)
    shift = nearest - length - start
    if nearest + 12 + size != where - _LOCATOR.size or offset + shift != nearest:
        faults.add(FaultKind.STRUCTURE, "", "the archive's ZIP64 record has a wrong size or offset")
    if disk or disks > 1 or own_disk or start_disk or here != count:
        what = "the archive's ZIP64 record declares it as one of several parts"
        faults.add(FaultKind.STRUCTURE, "", what)
    return _Large((count, length, start), nearest)
