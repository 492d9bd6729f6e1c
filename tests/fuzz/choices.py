"""An input of the fuzzer, read as a sequence of decisions.

A blind fuzzer hardly ever gets past a checksum or a length. So most inputs say how to build a file:
mostly right, and wrong in a few places. Bytes that are not there are zeros, and zero means right.
"""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Takes decisions from the bytes of an input, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def take(self, size: int) -> bytes:
        """Return this many bytes; fewer at the end of the input."""
        found = self._data[self._place : self._place + size]
        self._place += len(found)
        return found

    def rest(self) -> bytes:
        return self.take(len(self._data))

    def number(self, size: int = 1) -> int:
        return int.from_bytes(self.take(size), "little")

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number() % len(options)]

    def text(self) -> bytes:
        """Some bytes, with their length in front of them."""
        return self.take(self.number())

    def rarely(self) -> bool:
        return self.number() > 240

    def near(self, right: int, bits: int = 32) -> int:
        """The right number, or rarely another one that fits into its bits."""
        most = (1 << bits) - 1
        match self.number():
            case 255:
                wrong = self.number(bits // 8)
            case 254:
                wrong = right + 1
            case 253:
                wrong = right - 1
            case 252:
                wrong = most
            case 251:
                wrong = 0
            case 250:
                wrong = right + self.number(2)
            case _:
                wrong = right
        return wrong & most
