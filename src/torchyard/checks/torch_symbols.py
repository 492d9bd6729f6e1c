"""The symbols that a torch release exports, as digests of their names."""

from array import array
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b

from torchyard.model.values import Value

WIDTH = 8


class TorchSymbols(Value, kw_only=True, dict=True):
    """A torch wheel: its libraries, its toolkits, and sorted digests of its exported names."""

    file: str
    version: str
    libraries: tuple[str, ...]
    toolkits: tuple[str, ...]
    """The toolkits that it brings, such as `CUDA 13`; empty for a torch for CPUs."""
    digests: bytes

    @cached_property
    def _digests(self) -> frozenset[int]:
        return frozenset(array("Q", self.digests))

    def exports(self, digest: int) -> bool:
        """Return whether a name with this digest is exported."""
        return digest in self._digests

    @property
    def size(self) -> int:
        """The number of exported names."""
        return len(self.digests) // WIDTH


def symbol_digest(name: bytes) -> int:
    """Return a short digest of a name, long enough to be unique among all of torch's names."""
    return int.from_bytes(blake2b(name, digest_size=WIDTH).digest(), "little")


def packed_digests(digests: Iterable[int]) -> bytes:
    """Return distinct digests, sorted, as bytes."""
    return array("Q", sorted(set(digests))).tobytes()
