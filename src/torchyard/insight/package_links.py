"""The dependencies between libraries in a package and outside of it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from torchyard.insight.link_graph import LinkGraph, LinkNode, NodeKind, Origin
from torchyard.package.contents import Contents, PackageFile, is_library
from torchyard.package.elf.linker_symbols import LinkerSymbols, read_linker_symbols
from torchyard.package.elf.symbols import split_names

_NO_SYMBOLS = LinkerSymbols(frozenset(), frozenset())


class FileSymbols(NamedTuple):
    """A file's name in a build or package, and its symbols."""

    file: str
    symbols: LinkerSymbols


def symbols_in_files(folder: Path, files: Iterable[str]) -> Iterator[FileSymbols]:
    """Yield the symbols of files in a build directory; skip missing files."""
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
    """Return the combined symbols of files that are linked together."""
    found = [file.symbols for file in files] or [_NO_SYMBOLS]
    defined = frozenset().union(*(part.defined for part in found))
    return LinkerSymbols(defined, frozenset().union(*(part.needed for part in found)) - defined)


def carrying_symbols(user: LinkerSymbols, library: LinkerSymbols) -> list[str] | None:
    """Return the symbols that one file needs and the other defines; None if one is unread."""
    if not user.needed or not library.defined:
        return None
    return sorted(name.decode(errors="backslashreplace") for name in user.needed & library.defined)


_COLLECTED = re.compile(r"\.libs/[^/]+$|-[0-9a-f]{8}\.so(?:\.\d+)*$")
"""Names that auditwheel and similar tools give to libraries in a wheel."""


def package_graph(contents: Contents, outside: Mapping[str, str]) -> LinkGraph:
    """Return the programs and libraries of a package, and what they need.

    `outside` maps needed libraries that are not in the package to their origin: `system`, a
    project, or nothing.
    """
    files = [file for file in contents.files.values() if file.binary and file.binary.dynamic]
    names = _names(files)
    by_soname = {
        name: names[file.name]
        for file in files
        for name in (file.name.rpartition("/")[2], file.binary.soname if file.binary else "")
        if name
    }
    nodes = {names[file.name]: _node(names[file.name], file) for file in files}
    links: dict[str, tuple[str, ...]] = {}
    for file in files:
        needed = file.binary.needed if file.binary else ()
        links[names[file.name]] = tuple(dict.fromkeys(by_soname.get(name, name) for name in needed))
    for library in sorted({name for needed in links.values() for name in needed} - nodes.keys()):
        nodes[library] = _needed_outside(library, outside.get(library, ""))
        links[library] = ()
    return LinkGraph(nodes, links)


def _names(files: list[PackageFile]) -> dict[str, str]:
    """Return a name for each file: without its folder, if that is unique."""
    bases = [file.name.rpartition("/")[2] for file in files]
    return {
        file.name: base if bases.count(base) == 1 else file.name
        for file, base in zip(files, bases, strict=True)
    }


def _node(name: str, file: PackageFile) -> LinkNode:
    kind: NodeKind = "shared" if is_library(file.name) else "program"
    if file.binary and b"PyInit_" in file.binary.exports:
        kind = "module"
    origin: Origin = "bundled" if _COLLECTED.search(file.name) else "project"
    return LinkNode(name, kind, origin, "", file.name, file.size)


def _needed_outside(library: str, owner: str) -> LinkNode:
    origin: Origin = "system" if owner == "system" else "other" if owner else "missing"
    return LinkNode(library, "shared", origin, owner if origin == "other" else "")
