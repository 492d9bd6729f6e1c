"""Parts of a large member near its start or end, without unpacking the rest."""

import zlib
from collections.abc import Iterator

from torchyard.package.zip.directory import STORED, ZipEntry
from torchyard.package.zip.end import ReadAt
from torchyard.package.zip.inflate import pieces

_WINDOW = 32 << 10
_BEFORE = (bytes(_WINDOW), b"\1" * _WINDOW)
_PIECE = 64 << 10
_LONGEST = 256 << 20
"""Maximum bytes unpacked at an end."""
_FARTHEST = 1 << 20
"""The last possible start of a block, unless all bytes are stored or not a deflate stream."""

_DYNAMIC = 4
"""The type bits of a block with its own Huffman tables, after the bit for the last block."""
_MOST_CODES = 29
_LENGTHS = 4, 17
"""The minimum number of code lengths for the tables, and their first bit."""
_FULL = 128


def unpacked_end(stored: bytes) -> bytes:
    """Return the certain part of a member's end, from its last stored bytes; it may be empty."""
    for start in _block_starts(stored):
        first = _inflated(stored, start, _BEFORE[0])
        second = _inflated(stored, start, _BEFORE[1]) if first else b""
        if first and len(first) == len(second):
            return _common_end(first, second)
    return b""


def _block_starts(stored: bytes) -> Iterator[int]:
    """Yield the bits at which a block with a complete code for its tables could start."""
    for index in range(min(len(stored), _FARTHEST)):
        word = int.from_bytes(stored[index : index + 16], "little")
        for bit in range(8):
            head = word >> bit
            if head & 6 != _DYNAMIC:
                continue
            if head >> 3 & 31 > _MOST_CODES or head >> 8 & 31 > _MOST_CODES:
                continue
            if _is_complete(head):
                yield index * 8 + bit


def _is_complete(head: int) -> bool:
    """Return whether the lengths in a block's head form a complete prefix code."""
    least, start = _LENGTHS
    lengths = head >> start
    total = 0
    for _ in range((head >> 13 & 15) + least):
        length = lengths & 7
        if length:
            total += _FULL >> length
        lengths >>= 3
    return total == _FULL


def _inflated(stored: bytes, start: int, before: bytes) -> bytes:
    """Unpack from a bit on; return "" unless the stream ends exactly with the last byte."""
    inflater = zlib.decompressobj(-15, zdict=before)
    index, bit = divmod(start, 8)
    filler, extra = _filler(bit, stored[index])
    rest = memoryview(stored)[index + 1 :]
    try:
        found = [inflater.decompress(filler)[extra:]]
        found += [inflater.decompress(rest[at : at + _PIECE]) for at in range(0, len(rest), _PIECE)]
    except zlib.error:
        return b""
    return b"".join(found) if inflater.eof and not inflater.unused_data else b""


def _filler(bit: int, first: int) -> tuple[bytes, int]:
    """Return a prefix for a stream that starts within its first byte, and its unpacked size.

    Stored blocks start at a byte boundary, so all bits must keep their positions in bytes. A block
    of literals fills the bits before; each literal has nine bits, which shifts the rest by one.
    """
    literals = (bit - 2) % 8
    block = 2 | ((1 << 9 * literals) - 1) << 3
    size = 3 + 9 * literals + 7
    word = block | (first >> bit) << size
    return word.to_bytes((size + 8 - bit) // 8, "little"), literals


def _common_end(left: bytes, right: bytes) -> bytes:
    """Return the longest common end."""
    size = len(left)
    first, second = memoryview(left), memoryview(right)
    common, most = 0, size
    while common < most:
        half = (common + most + 1) // 2
        if first[size - half : size - common] == second[size - half : size - common]:
            common = half
        else:
            most = half - 1
    return left[size - common :]


_HEAD, _TAIL = 32 << 20, 64 << 20
"""The number of unpacked bytes kept at the start and at the end."""
_MORE = 1 << 20


class OutOfReachError(Exception):
    """A part is too far from both ends: the member must be unpacked completely."""


class MemberParts:
    """Unpacks requested parts of a member, from its start or from its end."""

    def __init__(self, read: ReadAt, entry: ZipEntry) -> None:
        self._read = read
        self._entry = entry
        self._pieces = pieces(read, entry)
        self._head = bytearray()
        self._tail = b""

    def read(self, offset: int, size: int) -> bytes:
        """Return unpacked bytes at an offset within the member."""
        entry, end = self._entry, offset + size
        if entry.method == STORED:
            return self._read(size, entry.data + offset)
        if end <= len(self._head) or end <= min(_HEAD, entry.size // 2):
            return self._from_head(offset, end)
        if entry.size - offset <= _TAIL:
            return self._from_tail(entry.size - offset, size)
        raise OutOfReachError

    def _from_head(self, offset: int, end: int) -> bytes:
        while len(self._head) < end:
            self._head += next(self._pieces, b"") or _missing()
        return bytes(self._head[offset:end])

    def _from_tail(self, distance: int, size: int) -> bytes:
        """Return bytes at a distance from the end; read more until they are certain."""
        entry, stored = self._entry, distance // 2 + _MORE
        while len(self._tail) < distance:
            if stored > entry.stored // 2:
                raise OutOfReachError
            self._tail = unpacked_end(self._read(stored, entry.data + entry.stored - stored))
            stored *= 2
        start = len(self._tail) - distance
        return self._tail[start : start + size]


def _missing() -> bytes:
    msg = "the member ends too early"
    raise ValueError(msg)
