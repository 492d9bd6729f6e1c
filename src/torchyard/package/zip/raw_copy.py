"""Copy members between archives verbatim, without recompression.

Adjacent members are copied at once, with their headers. Only renamed members need another
header, and all get another row in the directory.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from torchyard.errors import HostError
from torchyard.package.zip.directory import ZipEntry

_CHUNK = 1 << 20
_MAX_32 = 0xFFFF_FFFF
_ZIP64_VERSION = 45
_ZIP64_FIELD = 1
_UTF8_NAME = 0x800
_OFFSET = 42
"""The position of the member's offset in a row of the directory."""
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")


class Raw(NamedTuple):
    """Adjacent members of another archive; only a single one may have a new name."""

    source: BinaryIO
    entries: tuple[ZipEntry, ...]
    name: str = ""

    @property
    def names(self) -> list[str]:
        """Return the new names of the members."""
        return [self.name] if self.name else [entry.name for entry in self.entries]


def copy_raw(raw: Raw, to: BinaryIO) -> Iterator[bytes]:
    """Copy members, and yield their rows in the directory."""
    first, last = raw.entries[0], raw.entries[-1]
    offset, start = to.tell(), first.header
    if raw.name:
        to.write(_renamed(raw.source, first, raw.name))
        start = first.data
    _copy(raw.source, start, last.end, to)
    for entry in raw.entries:
        yield _row(entry, raw.name or entry.name, offset + entry.header - first.header)


def _renamed(source: BinaryIO, entry: ZipEntry, name: str) -> bytes:
    """Return the local header of a member, with another name."""
    head = os.pread(source.fileno(), entry.data - entry.header, entry.header)
    fields = list(_LOCAL.unpack_from(head))
    extra = head[_LOCAL.size + fields[9] :]
    fields[2], fields[9] = _flags(entry, name), len(name.encode())
    return _LOCAL.pack(*fields) + name.encode() + extra


def _flags(entry: ZipEntry, name: str) -> int:
    return entry.flags if name.isascii() else entry.flags | _UTF8_NAME


def _copy(source: BinaryIO, start: int, end: int, to: BinaryIO) -> None:
    """Copy within the kernel if possible, which saves a third of the time."""
    if hasattr(os, "copy_file_range"):
        offset = to.tell()
        to.flush()
        with suppress(OSError):  # not all disks support it; other errors recur below
            while start < end:
                size = os.copy_file_range(source.fileno(), to.fileno(), end - start, start, offset)
                if not size:
                    break
                start, offset = start + size, offset + size
        to.seek(offset)
    while start < end:
        part = os.pread(source.fileno(), min(_CHUNK, end - start), start)
        if not part:
            msg = "the archive became shorter while it was read"
            raise HostError(msg, hint="stop the program that writes it, and try again")
        to.write(part)
        start += len(part)


def _row(entry: ZipEntry, name: str, offset: int) -> bytes:
    """Return a row of the directory, with as much of the old row as possible."""
    row = entry.row
    if name == entry.name and not entry.extra and offset < _MAX_32:
        return b"%b%b%b" % (row[:_OFFSET], offset.to_bytes(4, "little"), row[_OFFSET + 4 :])
    large = [number for number in (entry.size, entry.stored, offset) if number >= _MAX_32]
    extra = b"".join(_other_fields(entry.extra))
    if large:
        extra = struct.pack(f"<HH{len(large)}Q", _ZIP64_FIELD, 8 * len(large), *large) + extra
    fields = list(_CENTRAL.unpack_from(row))
    fields[2] = max(fields[2], _ZIP64_VERSION) if large else fields[2]
    fields[3] = _flags(entry, name)
    fields[8:10] = min(entry.stored, _MAX_32), min(entry.size, _MAX_32)
    fields[10:12] = len(name.encode()), len(extra)
    fields[16] = min(offset, _MAX_32)
    return _CENTRAL.pack(*fields) + name.encode() + extra + entry.comment


def _other_fields(extra: bytes) -> Iterator[bytes]:
    """Yield the extra fields of a row, except ZIP64."""
    offset = 0
    while offset + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, offset)
        if kind != _ZIP64_FIELD:
            yield extra[offset : offset + 4 + size]
        offset += 4 + size
