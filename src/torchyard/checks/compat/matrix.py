"""Whether an extension loads with each of some torch releases, and if not, why.

Necessary, not sufficient: a library whose symbols are all there may still fail when it runs.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from torchyard.checks.compat.extension import ExtensionWheel
from torchyard.checks.compat.table import TORCH, torch_libraries
from torchyard.checks.compat.toolkits import library_toolkits
from torchyard.checks.torch_symbols import TorchSymbols, symbol_digest

METADATA = "METADATA"


class ObstacleKind(StrEnum):
    """Why a library does not load."""

    UNDEFINED = "undefined"
    """It needs symbols that nothing defines, with any torch."""
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
    """Compare a wheel with torch releases."""
    return tuple(
        LoadVerdict(torch, extension.admits(torch.version), tuple(_obstacles(extension, torch)))
        for torch in releases
    )


def _obstacles(extension: ExtensionWheel, torch: TorchSymbols) -> Iterator[Obstacle]:
    yield from toolkit_clashes(extension, torch.toolkits)
    for library in extension.libraries:
        lacking = [n for n in torch_libraries(library.needed) if n not in torch.libraries]
        if lacking:
            yield Obstacle(ObstacleKind.LIBRARY, library.member, tuple(lacking))
        nowhere = tuple(one.symbol for one in library.undefined if not one.needs)
        if nowhere:
            yield Obstacle(ObstacleKind.UNDEFINED, library.member, nowhere)
        symbols = tuple(
            one.symbol
            for one in library.undefined
            if one.needs == (TORCH,) and not torch.exports(symbol_digest(one.symbol.encode()))
        )
        if symbols:
            yield Obstacle(ObstacleKind.SYMBOL, library.member, symbols)


def _without_numbers(member: str) -> str:
    """Return what alternatives share, as libdemo_cuda118.so and libdemo_cuda130.so."""
    return re.sub(r"\d+", "", member)


def toolkit_clashes(extension: ExtensionWheel, brought: Collection[str]) -> Iterator[Obstacle]:
    """Yield the libraries that need another toolkit than torch brings, else the wheel's metadata.

    Of libraries that differ only in a number, it is enough that one fits.
    """
    foreign = {
        library.member: tuple(n for n in library.needed if _others(library_toolkits([n]), brought))
        for library in extension.libraries
    }
    fitting = {_without_numbers(member) for member, names in foreign.items() if not names}
    clashes = False
    for member, names in foreign.items():
        if names and _without_numbers(member) not in fitting:
            clashes = True
            yield Obstacle(ObstacleKind.TOOLKIT, member, names)
    required = tuple(sorted(_others(extension.toolkits, brought)))
    if required and not clashes:
        yield Obstacle(ObstacleKind.TOOLKIT, METADATA, required)


def _others(needed: Iterable[str], brought: Collection[str]) -> set[str]:
    """Return the needed toolkits of which another version is brought."""
    kinds = {toolkit.partition(" ")[0] for toolkit in brought}
    return {one for one in {*needed} - {*brought} if one.partition(" ")[0] in kinds}
