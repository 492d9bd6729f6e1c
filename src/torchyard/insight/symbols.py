"""Which files define a symbol, which need it, and which symbols make one need another."""

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from torchyard.host.demangle import demangled
from torchyard.package.contents import Contents
from torchyard.package.elf.linker_symbols import LinkerSymbols, read_linker_symbols
from torchyard.package.elf.symbols import split_names

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_UNWRITTEN = frozenset(("anonymous", "const", "namespace", "operator", "unsigned"))
"""Words of demangled names that are not in mangled ones."""
_MOST = 20_000
"""Names that are demangled at most."""
_NO_SYMBOLS = LinkerSymbols(frozenset(), frozenset())


class FileSymbols(NamedTuple):
    """A file, by its name in a build or package, and its symbols."""

    file: str
    symbols: LinkerSymbols


class FoundSymbol(NamedTuple):
    """A symbol with its demangled name, the files that define it, and those that need it."""

    name: str
    demangled: str
    defined_in: tuple[str, ...]
    needed_by: tuple[str, ...]


def symbols_in_files(
    folder: Path, files: Iterable[str], mention: bytes = b""
) -> Iterator[FileSymbols]:
    """Yield the symbols of files in a build directory; those that are not there are left out."""
    for name in files:
        path = folder / name
        if path.is_file():
            yield FileSymbols(name, read_linker_symbols(path, mention))


def symbols_in_package(contents: Contents, mention: bytes = b"") -> Iterator[FileSymbols]:
    """Yield the dynamic symbols of the libraries of a package."""
    for file in contents.files.values():
        binary = file.binary
        if binary is None or not any(
            mention in names for names in (binary.exports, binary.imports)
        ):
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


def mention_of(name: str) -> bytes:
    """Return bytes that every file has that knows a symbol, by its mangled or demangled name."""
    words = [word for word in _IDENTIFIER.findall(name) if word not in _UNWRITTEN]
    return max(words, key=len, default="").encode()


def find_symbol(name: str, files: Iterable[FileSymbols]) -> list[FoundSymbol]:
    """Return the symbols of a name: mangled, demangled with or without parameters, or a glob."""
    defined: dict[str, list[str]] = {}
    needed: dict[str, list[str]] = {}
    mention = mention_of(name)
    for file, symbols in files:
        for known, names in ((defined, symbols.defined), (needed, symbols.needed)):
            for one in names:
                if mention in one:
                    known.setdefault(one.decode(errors="backslashreplace"), []).append(file)
    readable = _readable(name, defined.keys() | needed.keys())
    return [
        FoundSymbol(one, shown, tuple(defined.get(one, ())), tuple(needed.get(one, ())))
        for one, shown in sorted(readable.items(), key=lambda item: (item[1], item[0]))
    ]


def _readable(name: str, names: Iterable[str]) -> dict[str, str]:
    """Return those names that are meant, with their demangled form."""
    candidates = sorted(names)
    if name in candidates:
        return {name: demangled([name]).get(name, name)}
    shown = demangled(candidates[:_MOST])
    wanted = name.replace(" ", "")
    return {
        one: shown.get(one, one) for one in candidates if _is_meant(wanted, shown.get(one, one))
    }


def _is_meant(wanted: str, name: str) -> bool:
    whole = name.replace(" ", "")
    plain = _without_parameters(whole)
    if any(sign in wanted for sign in "*?"):
        return fnmatchcase(whole, wanted) or fnmatchcase(plain, wanted)
    return (
        wanted in (whole, plain) or plain.endswith(f"::{wanted}") or whole.endswith(f"::{wanted}")
    )


def _without_parameters(name: str) -> str:
    """Return `c10::Error::what` for `c10::Error::what()const`."""
    start = name.find("(", 1)
    while start > 0 and name.startswith(("(anonymousnamespace)", "()("), start):
        start = name.find("(", start + 2)
    return name[:start] if start > 0 else name
