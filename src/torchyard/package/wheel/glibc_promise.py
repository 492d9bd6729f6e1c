"""The promise of `[build] glibc`: libraries need nothing that such systems lack."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.package.contents import VersionNeed
from torchyard.package.elf.file import versioned_symbols
from torchyard.package.elf.linker_symbols import read_linker_symbols
from torchyard.package.wheel.manylinux import above_ceiling

_UNITS = (".o", ".obj", ".a")
_SHOWN = 5
"""The number of symbols to name."""


def check_glibc(glibc: str, folders: Iterable[Path], build: Path) -> None:
    """Refuse libraries that need a newer glibc; name symbol, library and unit.

    Versions of libraries in the folders themselves are ignored. The units are those of a
    build directory that need the symbol.
    """
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    names = {path.name for path in files}
    broken = [
        (path, symbol, need)
        for path in files
        for symbol, need in _above(glibc, path)
        if need.library not in names
    ]
    if not broken:
        return
    units = [path for path in sorted(build.rglob("*")) if path.suffix in _UNITS and path.is_file()]
    lines = [
        f"{path.name} needs `{symbol}` in version {need.version} of {need.library}, "
        f"for {_unit_with(symbol, units, build)}"
        for path, symbol, need in broken[:_SHOWN]
    ]
    more = f"\nand {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
    msg = f"it would not run with the promised glibc {glibc}:\n" + "\n".join(lines) + more
    hint = f"compile in a system with glibc {glibc} or older: `image` in [root]; or promise less"
    raise BuildError(msg, hint=hint)


def _above(glibc: str, path: Path) -> Iterator[tuple[str, VersionNeed]]:
    """Yield the symbols of a file that systems with a glibc lack."""
    found = versioned_symbols(path)
    tag = f"manylinux_{glibc.replace('.', '_')}_any"
    _, above = above_ceiling([tag], {need.version for _, need in found})
    yield from ((symbol, need) for symbol, need in found if need.version in above)


def _unit_with(symbol: str, units: Iterable[Path], build: Path) -> str:
    """Return the first unit that needs a symbol."""
    name = symbol.encode()
    for unit in units:
        if name in read_linker_symbols(unit, mention=name).needed:
            return f"`{unit.relative_to(build)}`"
    return "a statically linked library, as no unit of this build needs it"
