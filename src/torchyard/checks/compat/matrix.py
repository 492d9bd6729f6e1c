"""Whether an extension loads with torch releases, and the obstacles.

This is necessary, not sufficient: a library with all symbols may still fail at run time.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from packaging.version import Version

from torchyard.checks.compat.extension import (
    ExtensionLibrary,
    ExtensionWheel,
    is_named,
    wheel_extension,
)
from torchyard.checks.compat.table import TORCH, torch_libraries
from torchyard.checks.compat.toolkits import library_toolkits
from torchyard.checks.compat.torch_symbols import torch_in
from torchyard.checks.compat.undefined import undefined_in
from torchyard.checks.expected import expected_of
from torchyard.checks.loader.companions import siblings_of
from torchyard.checks.loader.resolve import without_numbers
from torchyard.checks.subject import Subject
from torchyard.checks.torch_symbols import TorchSymbols, symbol_digest
from torchyard.model.values import Reported

METADATA = "METADATA"


class ObstacleKind(StrEnum):
    """Why a library does not load."""

    UNDEFINED = "undefined"
    """It needs symbols that nothing defines, with any torch."""
    SYMBOL = "symbol"
    """It needs symbols that this torch does not export."""
    LIBRARY = "library"
    """It needs a library that this torch lacks."""
    TOOLKIT = "toolkit"
    """It needs another major version of a toolkit, such as CUDA, than this torch brings."""


class Obstacle(Reported):
    """Why a library of a wheel does not load: the missing symbols, or the needed libraries."""

    kind: ObstacleKind
    member: str
    names: tuple[str, ...]


class LoadVerdict(NamedTuple):
    """A wheel and a torch release; without obstacles, it loads."""

    torch: TorchSymbols
    admitted: bool
    """Whether the wheel's metadata admits this release."""
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
    """Yield why a wheel does not load with a torch, without obstacles that alternatives avoid."""
    found = {
        library.member: [*_clashing(library, torch.toolkits), *_lacking(library, torch)]
        for library in extension.libraries
    }
    yield from _unfitting(extension, found, torch.toolkits)
    for library in extension.libraries:
        nowhere = tuple(undefined.symbol for undefined in library.undefined if not undefined.needs)
        if nowhere:
            yield Obstacle(ObstacleKind.UNDEFINED, library.member, nowhere)


def _lacking(library: ExtensionLibrary, torch: TorchSymbols) -> Iterator[Obstacle]:
    """Yield the libraries and symbols that a torch lacks."""
    lacking = [n for n in torch_libraries(library.needed) if n not in torch.libraries]
    if lacking:
        yield Obstacle(ObstacleKind.LIBRARY, library.member, tuple(lacking))
    symbols = tuple(
        name.symbol
        for name in library.undefined
        if name.needs == (TORCH,) and not torch.exports(symbol_digest(name.symbol.encode()))
    )
    if symbols:
        yield Obstacle(ObstacleKind.SYMBOL, library.member, symbols)


def toolkit_clashes(extension: ExtensionWheel, brought: Collection[str]) -> Iterator[Obstacle]:
    """Yield the libraries that need another toolkit than torch brings, else the wheel's metadata.

    Of libraries that differ only in a number, one must fit.
    """
    found = {library.member: list(_clashing(library, brought)) for library in extension.libraries}
    yield from _unfitting(extension, found, brought)


def _clashing(library: ExtensionLibrary, brought: Collection[str]) -> Iterator[Obstacle]:
    names = tuple(n for n in library.needed if _others(library_toolkits([n]), brought))
    if names:
        yield Obstacle(ObstacleKind.TOOLKIT, library.member, names)


def _unfitting(
    extension: ExtensionWheel, found: Mapping[str, Sequence[Obstacle]], brought: Collection[str]
) -> Iterator[Obstacle]:
    """Yield the obstacles of libraries without an alternative, else of the required toolkits."""
    fitting = {without_numbers(member) for member, obstacles in found.items() if not obstacles}
    left = [
        obstacle
        for member, obstacles in found.items()
        if without_numbers(member) not in fitting
        for obstacle in obstacles
    ]
    yield from left
    required = tuple(sorted(_others(extension.toolkits, brought)))
    if required and not any(obstacle.kind is ObstacleKind.TOOLKIT for obstacle in left):
        yield Obstacle(ObstacleKind.TOOLKIT, METADATA, required)


def _others(needed: Iterable[str], brought: Collection[str]) -> set[str]:
    """Return the needed toolkits that are brought in another version."""
    kinds = {toolkit.partition(" ")[0] for toolkit in brought}
    return {toolkit for toolkit in {*needed} - {*brought} if toolkit.partition(" ")[0] in kinds}


@lru_cache(maxsize=1)
def compared_torches(subject: Subject) -> list[TorchSymbols]:
    """Return the torch that is checked with a wheel, else those that it requires."""
    if not is_named(subject):
        return []
    torches = siblings_of(subject).given.get(TORCH, ())
    versions = ((wheel, expected_of(wheel).version) for wheel in torches)
    given = [torch_in(wheel, version) for wheel, version in versions if version]
    extension = wheel_extension(subject)
    if given or extension.requires_torch is None:
        return given  # another rule reports a missing requirement
    neighbours = (torch for torch in subject.torches() if extension.is_beside(torch.file))
    admitted = (torch for torch in neighbours if extension.admits(torch.version))
    return sorted(admitted, key=lambda torch: Version(torch.version), reverse=True)


def undecided_symbols(subject: Subject) -> dict[str, int]:
    """Return how many symbols need an unavailable library, or `torch`, by its name."""
    undefined = (symbol for symbols in undefined_in(subject).values() for symbol in symbols)
    found = Counter(symbol.needs[0] for symbol in undefined if not symbol.is_missing)
    if found[TORCH] and compared_torches(subject):
        del found[TORCH]
    return {name: count for name, count in found.most_common() if count}
