"""Whether an extension loads with each of some torch releases, and if not, why.

Necessary, not sufficient: a library whose symbols are all there may still fail when it runs.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from torchyard.checks.compat.extension import ExtensionLibrary, ExtensionWheel
from torchyard.checks.compat.table import torch_libraries
from torchyard.checks.compat.toolkits import library_toolkits
from torchyard.checks.compat.torch_symbols import TorchSymbols

METADATA = "METADATA"


class ObstacleKind(StrEnum):
    """Why a library does not load."""

    SYMBOL = "symbol"
    """It needs symbols that this torch does not export."""
    LIBRARY = "library"
    """It needs a library that this torch does not have."""
    TOOLKIT = "toolkit"
    """It needs another major version of a toolkit, such as CUDA, than this torch brings."""


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
    if torch.toolkits:
        yield from _clash(extension, torch.toolkits)
    for library in extension.libraries:
        lacking = [n for n in torch_libraries(library.needed) if n not in torch.libraries]
        if lacking:
            yield Obstacle(ObstacleKind.LIBRARY, library.member, tuple(lacking))
        symbols = tuple(_missing(library, torch, releases))
        if symbols:
            yield Obstacle(ObstacleKind.SYMBOL, library.member, symbols)


def _without_numbers(member: str) -> str:
    """Return what alternatives share, as libdemo_cuda118.so and libdemo_cuda130.so."""
    return re.sub(r"\d+", "", member)


def _clash(extension: ExtensionWheel, brought: Sequence[str]) -> Iterator[Obstacle]:
    """Yield the libraries that need other toolkits; without one, the wheel's metadata may.

    Of libraries that differ only in a number, it is enough that one fits.
    """
    foreign = {
        library.member: tuple(n for n in library.needed if library_toolkits([n]) - {*brought})
        for library in extension.libraries
    }
    fitting = {_without_numbers(member) for member, names in foreign.items() if not names}
    clashes = False
    for member, names in foreign.items():
        if names and _without_numbers(member) not in fitting:
            clashes = True
            yield Obstacle(ObstacleKind.TOOLKIT, member, names)
    required = tuple(name for name in extension.toolkits if name not in brought)
    if required and not clashes:
        yield Obstacle(ObstacleKind.TOOLKIT, METADATA, required)


def _missing(
    library: ExtensionLibrary, torch: TorchSymbols, releases: Sequence[TorchSymbols]
) -> Iterator[str]:
    for symbol in library.undefined:
        if torch.exports(symbol.digest):
            continue
        if symbol.is_torchs or any(other.exports(symbol.digest) for other in releases):
            yield symbol.name
