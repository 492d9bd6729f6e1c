"""The symbols of linked files, and those that make one file need another."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from torchyard.package.contents import Contents
from torchyard.package.elf.linker_symbols import LinkerSymbols, read_linker_symbols
from torchyard.package.elf.symbols import split_names

_NO_SYMBOLS = LinkerSymbols(frozenset(), frozenset())


class FileSymbols(NamedTuple):
    """A file, by its name in a build or package, and its symbols."""

    file: str
    symbols: LinkerSymbols


def symbols_in_files(folder: Path, files: Iterable[str]) -> Iterator[FileSymbols]:
    """Yield the symbols of files in a build directory; those that are not there are left out."""
    for name in files:
        path = folder / name
        if path.is_file():
            yield FileSymbols(name, read_linker_symbols(path))


def symbols_in_package(contents: Contents) -> Iterator[FileSymbols]:
    """Yield the dynamic symbols of the libraries of a package."""
    for file in contents.files.values():
        binary = file.binary
        if binary is None:
            continue
        defined = frozenset(split_names(binary.exports))
        yield FileSymbols(
            file.name, LinkerSymbols(defined, frozenset(split_names(binary.imports)) - defined)
        )


def joined(files: Iterable[FileSymbols]) -> LinkerSymbols:
    """Return the symbols of several files that are linked together."""
    found = [one.symbols for one in files] or [_NO_SYMBOLS]
    defined = frozenset().union(*(one.defined for one in found))
    return LinkerSymbols(defined, frozenset().union(*(one.needed for one in found)) - defined)


def carrying_symbols(user: LinkerSymbols, library: LinkerSymbols) -> list[str] | None:
    """Return the names that one needs and the other defines; None if one has not been read."""
    if not user.needed or not library.defined:
        return None
    return sorted(name.decode(errors="backslashreplace") for name in user.needed & library.defined)
