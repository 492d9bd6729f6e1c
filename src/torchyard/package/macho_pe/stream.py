"""Streaming reader for programs and libraries of macOS and Windows.

lief needs complete files, so a large one goes through a temporary file.
"""

import struct
from typing import TYPE_CHECKING

from torchyard.package.contents import Binary
from torchyard.package.limits import Limits

if TYPE_CHECKING:
    from tempfile import _TemporaryFileWrapper

_SLIM = frozenset(bytes.fromhex(word) for word in ("feedface", "feedfacf", "cefaedfe", "cffaedfe"))
_FAT = bytes.fromhex("cafebabe")
_MAGICS = (*_SLIM, _FAT, b"MZ")
_MOST_SLICES = 16
"""Java class files have the same magic, but a larger number after it."""
_SMALL = 8 << 20


def is_foreign(piece: bytes | bytearray) -> bool:
    """Return whether a file starts like a program or library of macOS or Windows."""
    if not piece.startswith(_MAGICS):
        return False
    return bytes(piece[:4]) in _SLIM or _is_fat(piece) or _is_pe(piece)


def _is_fat(piece: bytes | bytearray) -> bool:
    return piece[:4] == _FAT and 0 < int.from_bytes(piece[4:8], "big") < _MOST_SLICES


def _is_pe(piece: bytes | bytearray) -> bool:
    """Return whether the DOS header points to a PE header; else it is a DOS program."""
    if piece[:2] != b"MZ" or len(piece) < 64:  # noqa: PLR2004 - the old header
        return False
    (offset,) = struct.unpack_from("<I", piece, 60)
    return piece[offset : offset + 4] == b"PE\0\0"


def _temporary() -> "_TemporaryFileWrapper[bytes]":
    from tempfile import NamedTemporaryFile  # noqa: PLC0415 - slow to import, and rarely used

    return NamedTemporaryFile()


class ForeignStream:
    """A Mach-O or PE file, fed in pieces."""

    def __init__(self, first: bytes, size: int, limits: Limits) -> None:
        self._is_pe = _is_pe(first)
        self._size = size
        self._limits = limits
        self._data = bytearray()
        self._file = _temporary() if _SMALL < size <= limits.foreign else None

    def feed(self, piece: bytes) -> None:
        if self._file is not None:
            self._file.write(piece)
        elif self._size <= _SMALL:
            self._data += piece

    def binary(self) -> Binary:
        """Return the parsed file; raise `ValueError` if it is damaged."""
        from torchyard.package.macho_pe import lief_reader  # noqa: PLC0415 - lief is large, and rarely used

        if self._size > self._limits.foreign:
            msg = f"its {self._size} bytes exceed the limit for such files"
            raise ValueError(msg)
        read = lief_reader.read_pe if self._is_pe else lief_reader.read_macho
        if self._file is None:
            return read(bytes(self._data), self._size, self._limits.table)
        with self._file as file:
            file.flush()
            return read(file.name, self._size, self._limits.table)
