"""Generated zip archives, in which any record can be wrong."""

import struct
import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

MAX_16, MAX_32 = 0xFFFF, 0xFFFF_FFFF


class Made(NamedTuple):
    """A member. Fields that are None are correct; `own` overrides its local header."""

    name: bytes = b"a.txt"
    content: bytes = b"some text, some text, some text"
    method: int = 8
    flags: int = 0
    crc: int | None = None
    size: int | None = None
    stored: int | None = None
    data: bytes | None = None
    extra: bytes = b""
    own_extra: bytes = b""
    own: Mapping[str, int | bytes] = MappingProxyType({})
    mode: int = 0o100644
    header: int | None = None
    descriptor: bytes = b""
    before: bytes = b""
    disk: int = 0


class End(NamedTuple):
    """The end record, if it is to be wrong, and the bytes around it."""

    members: int | None = None
    size: int | None = None
    start: int | None = None
    comment: bytes = b""
    comment_size: int | None = None
    large: bool = False
    after: bytes = b""
    before: bytes = b""
    disk: int = 0


def make_zip(members: Sequence[Made], end: End = End()) -> bytes:  # noqa: B008 - a constant
    """Write the members, the directory, and the end."""
    data = bytearray()
    directory = bytearray()
    for member in members:
        data += member.before
        place = len(data) if member.header is None else member.header
        packed = member.data if member.data is not None else _packed(member)
        numbers = {
            "version": 20,
            "flags": member.flags,
            "method": member.method,
            "time": 0,
            "date": 33,
            "crc": _or(member.crc, zlib.crc32(member.content)),
            "stored": _or(member.stored, len(packed)),
            "size": _or(member.size, len(member.content)),
        }
        own: dict[str, int | bytes] = {**numbers, "name": member.name, **member.own}
        name = own.pop("name")
        assert isinstance(name, bytes)
        row = (*own.values(), len(name), len(member.own_extra))
        data += struct.pack("<4sHHHHHIIIHH", b"PK\3\4", *row) + name + member.own_extra
        data += packed + member.descriptor
        lengths = (len(member.name), len(member.extra), 0, member.disk, 0)
        row = (3 << 8 | 20, *numbers.values(), *lengths, member.mode << 16, min(place, MAX_32))
        directory += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", *row)
        directory += member.name + member.extra
    start, size, count = len(data), len(directory), len(members)
    data += directory + end.before
    if end.large:
        where = len(data)
        row = (44, 45, 45, 0, 0, count, count, size, start)
        data += struct.pack("<4sQHHIIQQQQ", b"PK\6\6", *row)
        data += struct.pack("<4sIQI", b"PK\6\7", 0, where, 1)
    count, size, start = _or(end.members, count), _or(end.size, size), _or(end.start, start)
    comment = _or(end.comment_size, len(end.comment))
    row = (end.disk, 0, count, count, size, start, comment)
    data += struct.pack("<4sHHHHIIH", b"PK\5\6", *row) + end.comment
    return bytes(data) + end.after


def _packed(member: Made) -> bytes:
    if member.method != 8:
        return member.content
    stream = zlib.compressobj(6, zlib.DEFLATED, -15)
    return stream.compress(member.content) + stream.flush()


def _or(number: int | None, otherwise: int) -> int:
    return otherwise if number is None else number
