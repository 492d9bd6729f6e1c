"""Parts of a large member that are near its beginning or its end, without those between."""

from torchyard.package.zip.directory import STORED, ZipEntry
from torchyard.package.zip.end import ReadAt
from torchyard.package.zip.inflate import pieces
from torchyard.package.zip.tail import unpacked_end

_HEAD, _TAIL = 32 << 20, 64 << 20
"""How many unpacked bytes are kept of the beginning and of the end."""
_MORE = 1 << 20


class OutOfReachError(Exception):
    """A part lies too far from both ends: the member must be unpacked as a whole."""


class MemberParts:
    """Unpacks what is asked for of a member: from its beginning on, or from within its end."""

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
        """Return bytes at a distance from the end; read more of the end until they are certain."""
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
