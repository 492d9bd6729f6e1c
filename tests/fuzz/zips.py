"""Zip archives that are right in most places."""

import struct
import zlib
from typing import NamedTuple

from tests.fuzz.choices import Choices

_LARGE = 0xFFFF_FFFF


class _Row(NamedTuple):
    """What is said of a member, in front of it and in the directory."""

    name: bytes
    flags: int
    method: int
    crc: int
    stored: int
    size: int


def build_zip(choices: Choices, members: list[tuple[bytes, bytes]], method: int = 8) -> bytes:
    """An archive with these members; `method` is how they are packed if nothing else is chosen."""
    body = bytearray(choices.text() if choices.rarely() else b"")
    rows = [_add(choices, body, name, content, method) for name, content in members]
    if choices.rarely():
        body += choices.text()
    start = len(body)
    if choices.rarely():
        rows.reverse()
    if choices.rarely() and rows:
        rows.append(choices.pick(rows))
    body += b"".join(rows)
    size, count = len(body) - start, len(rows)
    if choices.rarely():
        body += _large_end(choices, len(body), start, count)
        size, start, count = (choices.pick((n, _LARGE)) for n in (size, start, count))
    comment = choices.text() if choices.rarely() else b""
    numbers = [choices.near(number, bits) for number, bits in ((0, 16), (0, 16), (count, 16))]
    numbers += [choices.near(count & 0xFFFF, 16), choices.near(size), choices.near(start)]
    body += struct.pack("<4sHHHHIIH", b"PK\5\6", *numbers, choices.near(len(comment), 16))
    return bytes(body + comment)


def _add(choices: Choices, body: bytearray, name: bytes, content: bytes, method: int) -> bytes:
    """Write a member, and give its row of the directory."""
    header = len(body)
    method = choices.pick((method, 8 - method, 12)) if choices.rarely() else method
    data = _deflated(content) if method else content
    if choices.rarely():
        data = data[: choices.number(2)]
    flags = 0 if name.isascii() else 0x800
    with_descriptor = choices.rarely()
    row = _Row(
        name,
        choices.near(flags | 8 * with_descriptor, 16),
        method,
        choices.near(zlib.crc32(content)),
        choices.near(len(data)),
        choices.near(len(content)),
    )
    own = row._replace(crc=0, stored=0, size=0) if with_descriptor else row
    own = _changed(choices, own) if choices.rarely() else own
    own, extra = _extra(choices, own)
    lengths = choices.near(len(own.name), 16), choices.near(len(extra), 16)
    known = struct.pack("<HHHHHIII", 20, own.flags, own.method, 0, 33, *own[3:])
    body += b"PK\3\4" + known + struct.pack("<HH", *lengths) + own.name + extra + data
    if with_descriptor:
        body += choices.pick((b"PK\7\10", b"")) + struct.pack("<III", *row[3:])
    row, extra = _extra(choices, row)
    more = (len(row.name), len(extra), 0, 0, 0, choices.near(0o644 << 16), choices.near(header))
    known = struct.pack("<HHHHHHIII", 3 << 8, 20, row.flags, row.method, 0, 33, *row[3:])
    return b"PK\1\2" + known + struct.pack("<HHHHHII", *more) + row.name + extra


def _deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def _changed(choices: Choices, row: _Row) -> _Row:
    return row._replace(
        name=choices.text() if choices.rarely() else row.name,
        method=choices.near(row.method, 16),
        crc=choices.near(row.crc),
        size=choices.near(row.size),
    )


def _extra(choices: Choices, row: _Row) -> tuple[_Row, bytes]:
    """Move the sizes into a field for large ones, or add any other field; mostly neither."""
    if not choices.rarely():
        return row, b""
    if choices.number() % 2:
        content = choices.text()
        kind = choices.pick((1, 0x7075, 0x5455))
        return row, struct.pack("<HH", kind, choices.near(len(content), 16)) + content
    content = struct.pack("<QQ", choices.near(row.size, 64), choices.near(row.stored, 64))
    return row._replace(size=_LARGE, stored=_LARGE), struct.pack("<HH", 1, 16) + content


def _large_end(choices: Choices, where: int, start: int, count: int) -> bytes:
    numbers = [choices.near(number, 64) for number in (count, count, where - start, start)]
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", choices.near(44, 64), 45, 45, 0, 0, *numbers)
    return record + struct.pack("<4sIQI", b"PK\6\7", 0, choices.near(where, 64), 1)
