"""Whether an extension loads with each of some torch releases, and if not, why.

Necessary, not sufficient: a library whose symbols are all there may still fail when it runs.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from torchyard.checks.compat.cuda import cuda_majors
from torchyard.checks.compat.extension import ExtensionLibrary, ExtensionWheel
from torchyard.checks.compat.table import torch_libraries
from torchyard.checks.compat.torch_symbols import TorchSymbols


class ObstacleKind(StrEnum):
    """Why a library does not load."""

    SYMBOL = "symbol"
    """It needs symbols that this torch does not export."""
    LIBRARY = "library"
    """It needs a library that this torch does not have."""
    CUDA = "cuda"
    """It needs another major version of CUDA than this torch brings."""


class Obstacle(NamedTuple):
    """Why a library of a wheel does not load: the missing symbols, or the needed libraries."""

    kind: ObstacleKind
    member: str
    names: tuple[str, ...]


class LoadVerdict(NamedTuple):
    """A wheel and a torch release; without obstacles, it loads."""

    torch: TorchSymbols
    admitted: bool
    """Whether the wheel's metadata admit this release."""
    obstacles: tuple[Obstacle, ...]

    @property
    def loads(self) -> bool:
        return not self.obstacles


def load_matrix(
    extension: ExtensionWheel, releases: Sequence[TorchSymbols]
) -> tuple[LoadVerdict, ...]:
    """Compare a wheel with torch releases; a symbol that any of them exports may be torch's."""
    return tuple(
        LoadVerdict(
            torch,
            extension.admits(torch.version),
            tuple(_obstacles(extension, torch, releases)),
        )
        for torch in releases
    )


def _obstacles(
    extension: ExtensionWheel, torch: TorchSymbols, releases: Sequence[TorchSymbols]
) -> Iterator[Obstacle]:
    cuda = cuda_majors(name for library in extension.libraries for name in library.needed)
    if (missing := {*cuda, *extension.required_cuda} - {*torch.cuda}) and torch.cuda:
        yield _cuda_clash(extension, missing)
    for library in extension.libraries:
        lacking = [n for n in torch_libraries(library.needed) if n not in torch.libraries]
        if lacking:
            yield Obstacle(ObstacleKind.LIBRARY, library.member, tuple(lacking))
        symbols = tuple(_missing(library, torch, releases))
        if symbols:
            yield Obstacle(ObstacleKind.SYMBOL, library.member, symbols)


def _cuda_clash(extension: ExtensionWheel, majors: set[str]) -> Obstacle:
    """Return the first library that needs these versions; without one, the wheel's metadata do."""
    for library in extension.libraries:
        names = tuple(name for name in library.needed if cuda_majors([name]) & majors)
        if names:
            return Obstacle(ObstacleKind.CUDA, library.member, names)
    names = tuple(f"CUDA {major}" for major in sorted(majors))
    return Obstacle(ObstacleKind.CUDA, "METADATA", names)


def _missing(
    library: ExtensionLibrary, torch: TorchSymbols, releases: Sequence[TorchSymbols]
) -> Iterator[str]:
    for symbol in library.undefined:
        if torch.exports(symbol.digest):
            continue
        if symbol.is_torchs or any(other.exports(symbol.digest) for other in releases):
            yield symbol.name
