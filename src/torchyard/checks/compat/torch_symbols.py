"""The symbols that a torch release exports, as digests of their names."""

from array import array
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b

from torchyard.checks.compat.cuda import cuda_majors
from torchyard.checks.compat.table import torch_libraries
from torchyard.model.values import Value
from torchyard.package.wheel.metadata import fields_of, values
from torchyard.package.wheel.parts import WheelParts

WIDTH = 8


class TorchSymbols(Value, kw_only=True, dict=True):
    """A torch wheel: its libraries, its CUDA, and sorted digests of the names it exports."""

    file: str
    version: str
    libraries: tuple[str, ...]
    cuda: tuple[str, ...]
    """The major version of its CUDA; nothing for a torch without."""
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


def packed_digests(names: Iterable[bytes]) -> bytes:
    """Return the digests of names, sorted, each once."""
    digests = array("Q", sorted({symbol_digest(name) for name in names}))
    return digests.tobytes()


def read_torch(wheel: WheelParts, version: str) -> TorchSymbols:
    """Read the symbols of a torch wheel; of its largest libraries only the parts that have them."""
    names = torch_libraries(wheel.libraries())
    required = values(fields_of(wheel.metadata), "Requires-Dist")
    needed = [
        needed
        for name in names
        if "cuda" in name and wheel.is_small(name) and (binary := wheel.binary(name))
        for needed in binary.needed
    ]
    exported = (symbol for name in names for symbol in wheel.exports(name))
    return TorchSymbols(
        file=wheel.name,
        version=version,
        libraries=tuple(sorted(name.rpartition("/")[2] for name in names)),
        cuda=tuple(sorted(cuda_majors(needed) or cuda_majors((), required))),
        digests=packed_digests(exported),
    )
