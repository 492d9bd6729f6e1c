"""Mach-O and PE files, read by lief."""

from torchyard.package.contents import Binary
from torchyard.package.limits import Limits

_MACHO = frozenset(bytes.fromhex(word) for word in ("feedface", "feedfacf", "cefaedfe", "cffaedfe"))


def is_foreign(piece: bytes) -> bool:
    """Whether a file begins like a program or library of macOS or Windows."""
    return piece[:4] in _MACHO


class ForeignStream:
    def __init__(self, piece: bytes, size: int, limits: Limits) -> None:
        self._pieces: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def binary(self) -> Binary:
        raise ValueError("it can't be read")
