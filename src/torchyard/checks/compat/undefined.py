"""Symbols that the libraries of a package need, and that no available library defines.

A reference with a symbol version (`memcpy@GLIBC_2.14`) was found in a library when the file was
linked. Every other one is searched in the libraries of a process that loads the file: the package's
own, those that it needs from others, Python, and glibc.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from torchyard.checks.compat.table import TORCH, load_compat_table, torch_libraries, torch_row
from torchyard.checks.loader.companions import is_vendors, without_digest
from torchyard.checks.loader.resolve import is_program, resolver_of
from torchyard.checks.subject import Subject
from torchyard.compute.registry import PLAIN
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.package.elf.symbols import free_names, split_names
from torchyard.package.policy import load_layouts

SYSTEM_SYMBOLS, TORCH_WORDS = "system_symbols.txt", "torch_words.txt"
BESIDE_TORCH = "libraries that torch needs"
_PYTHONS = ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libutil.so.1")
"""Libraries that every process has, as Python needs them."""
_VERSIONED = ("ld-linux*.so.*", "libgcc_s.so.1", "libstdc++.so.6")
"""Libraries in which all symbols have versions."""
_ANYTHING, _PLAIN, _FAMILIES = "anything", "C functions", "functions of known families"
"""The kinds of symbols that an unavailable library may define."""
_MOST = 500
"""Maximum libraries to follow from one; hostile packages may have 100,000."""
_LETTERS = 10
_NAME = re.compile(r"_Z(?:T[hv]n?\d+_(?:n?\d+_)?)?[A-Za-z]*(\d{1,4})")


class Undefined(NamedTuple):
    """A symbol that a file needs, and the unavailable libraries that may define it.

    `needs` names libraries, or `torch`; if it is empty, nothing defines the symbol.
    """

    symbol: str
    needs: tuple[str, ...]
    is_torchs: bool = False
    """Whether only torch can define it."""

    @property
    def is_missing(self) -> bool:
        """Return whether nothing defines it, by the known names that torch exports."""
        unlikely = not self.is_torchs and leading_word(self.symbol) not in _exported_words()
        return not self.needs or (self.needs == (TORCH,) and unlikely)


@lru_cache(maxsize=1)
def undefined_in(subject: Subject) -> Mapping[str, tuple[Undefined, ...]]:
    """Return the undefined symbols of the libraries that Python loads, by member."""
    search, names = _Search(subject), resolver_of(subject).names
    found = ((path, tuple(search.undefined(path))) for path in resolver_of(subject).binaries)
    return {names[path]: symbols for path, symbols in found if symbols}


class _Search:
    """Searches the definitions of symbols in a package."""

    def __init__(self, subject: Subject) -> None:
        resolver = resolver_of(subject)
        self._binaries, self._system = resolver.binaries, resolver.system
        self._extra = subject.policy.system
        self._beside = resolver.siblings.libraries
        self._exports = set(b"".join(b.exports for b in self._binaries.values()).split(b"\0"))
        self._paths = {b.soname: path for path, b in self._binaries.items()} | resolver.by_name
        self._users: dict[str, list[str]] = {}
        for path, binary in self._binaries.items():
            for needed in filter(None, map(self._paths.get, binary.needed)):
                self._users.setdefault(needed, []).append(path)
        self._for_cpu = subject.expected.compute == PLAIN
        self._is_beside_torch = TORCH in resolver.siblings.requirements

    def undefined(self, path: str) -> Iterator[Undefined]:
        """Yield the symbols that a library needs and no available library defines."""
        table = load_compat_table()
        wanted = free_names(self._binaries[path]) - self._exports
        wanted = wanted.difference(*map(_system_symbols().__getitem__, _PYTHONS))
        names = {raw: raw.decode(errors="backslashreplace") for raw in sorted(wanted)}
        names = {raw: name for raw, name in names.items() if not table.is_runtimes(name)}
        if not names or is_program(path):
            return
        loaders = self._loaders(path)
        outside = {library: self._defines(library) for library in self._outside(loaders)}
        defined = set().union(*(names for names in outside.values() if not isinstance(names, str)))
        has_torch = TORCH in outside.values()
        is_loaded = has_torch or any(b"PyInit_" in self._binaries[p].exports for p in loaders)
        for name in (name for raw, name in names.items() if raw not in defined):
            if table.is_torchs(name):
                is_near = has_torch or _ANYTHING in outside.values()
                yield Undefined(name, (TORCH,) if is_near else (), is_torchs=True)
            elif is_loaded and (name.startswith("_Z") or _PLAIN not in outside.values()):
                yield Undefined(name, tuple(self._candidates(name, outside)))

    def _candidates(
        self, name: str, outside: Mapping[str, str | Collection[bytes]]
    ) -> Iterator[str]:
        """Yield the libraries that may define a symbol other than torch's."""
        table = load_compat_table()
        is_familiar = table.is_others(name)
        kinds = (_ANYTHING, _FAMILIES) if is_familiar else (_ANYTHING,)
        yield from (library for library, defines in outside.items() if defines in kinds)
        has_torch = TORCH in outside.values()
        is_brought = (is_familiar and not self._for_cpu) or table.is_openmps(name)
        if is_brought and (has_torch or self._is_beside_torch):
            yield BESIDE_TORCH
        yield from [TORCH] * has_torch

    def _loaders(self, path: str) -> dict[str, None]:
        """Return a file and its loaders, nearest first."""
        loaders = dict.fromkeys([path])
        for library in (waiting := [path]):
            users = islice(self._users.get(library, ()), _MOST)
            waiting += (new := dict.fromkeys(user for user in users if user not in loaders))
            loaders |= new
            if len(loaders) > _MOST:
                break
        return loaders

    def _outside(self, paths: Collection[str]) -> Iterator[str]:
        """Yield the direct and indirect libraries of files that the package lacks."""
        seen: set[str] = set()
        files = [self._binaries[path] for path in paths]
        for binary in islice(files, _MOST):
            for library in dict.fromkeys(binary.needed):
                if library not in seen and library in self._paths:
                    files.append(self._binaries[self._paths[library]])
                elif library not in seen:
                    files += [self._beside[library]] if library in self._beside else []
                    yield library
                seen.add(library)

    def _defines(self, library: str) -> str | Collection[bytes]:
        """Return the symbols of a library, or the kind that it may define if unknown."""
        if torch_libraries([library]):
            return TORCH
        if library in self._beside:
            return set(split_names(self._beside[library].exports))
        if library in _system_symbols() or any_match(library, _VERSIONED):
            return _system_symbols().get(library, ())
        vendors = (*load_layouts().drivers, *torch_row().needed)
        if any_match(library, vendors) or is_vendors(without_digest(library)):
            return _FAMILIES
        is_plain = any_match(library, self._system) and not any_match(library, self._extra)
        return _PLAIN if is_plain else _ANYTHING


def leading_word(symbol: str) -> str:
    """Return a symbol's leading word: the outermost namespace, or up to ten letters of a function.

    It is `fbgemm` of `fbgemm::Packed`, and `mkl` of `mkl_blas_dgemm`.
    """
    if found := _NAME.match(symbol):
        name = symbol[found.end() : found.end() + int(found[1])]
        if "N" in found[0]:
            return name
        symbol = name
    return symbol.lstrip("_").partition("_")[0][:_LETTERS]


@cache
def _exported_words() -> frozenset[str]:
    """Return the leading words of torch's exports besides its own functions."""
    return frozenset(read_data(TORCH_WORDS).splitlines())


@cache
def _system_symbols() -> dict[str, frozenset[bytes]]:
    """Return the symbols of libraries on every system."""
    parts = (part.partition("]") for part in read_data(SYSTEM_SYMBOLS).split("[")[1:])
    return {library: frozenset(text.encode().split()) for library, _, text in parts}
