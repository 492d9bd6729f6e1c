"""The symbols that a torch release exports, as digests of their names."""

from array import array
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b

from torchyard.checks.compat.table import torch_libraries
from torchyard.checks.compat.toolkits import library_toolkits, required_toolkits
from torchyard.model.values import Value
from torchyard.package.elf.symbols import split_names
from torchyard.package.wheel.metadata import fields_of, values
from torchyard.package.wheel.parts import WheelParts

WIDTH = 8


class TorchSymbols(Value, kw_only=True, dict=True):
    """A torch wheel: its libraries, its toolkits, and sorted digests of the names it exports."""

    file: str
    version: str
    libraries: tuple[str, ...]
    toolkits: tuple[str, ...]
    """The toolkit that it brings, such as `CUDA 13`; none for a torch for CPUs."""
    digests: bytes

    @cached_property
    def _known(self) -> frozenset[int]:
        return frozenset(array("Q", self.digests))

    def exports(self, digest: int) -> bool:
        """Return whether a name with this digest is exported."""
        return digest in self._known

    @property
    def size(self) -> int:
        """How many names it exports."""
        return len(self.digests) // WIDTH


def symbol_digest(name: bytes) -> int:
    """Return a short digest of a name: among all of torch's, two are never the same by chance."""
    return int.from_bytes(blake2b(name, digest_size=WIDTH).digest(), "little")


def packed_digests(digests: Iterable[int]) -> bytes:
    """Return digests as bytes: sorted, each once."""
    return array("Q", sorted(set(digests))).tobytes()


def read_torch(wheel: WheelParts, version: str) -> TorchSymbols:
    """Read the symbols of a torch wheel; of its largest libraries only the parts that have them."""
    members = torch_libraries(wheel.libraries())
    needed: list[str] = []
    digests: set[int] = set()
    for member in members:
        binary = wheel.binary(member) if wheel.is_small(member) else None
        needed += binary.needed if binary else ()
        exported = split_names(binary.exports) if binary else wheel.exports(member)
        digests.update(map(symbol_digest, exported))
    required = values(fields_of(wheel.metadata), "Requires-Dist")
    return TorchSymbols(
        file=wheel.name,
        version=version,
        libraries=tuple(sorted(member.rpartition("/")[2] for member in members)),
        toolkits=tuple(sorted(library_toolkits(needed) or required_toolkits(required))),
        digests=packed_digests(digests),
    )
