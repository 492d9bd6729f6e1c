"""Symbols that the libraries of a package need, and that nothing at hand defines.

A reference with a symbol version (`memcpy@GLIBC_2.14`) was found in a library when the file was
linked. Every other one is looked for in what a process has that loads the file: the package's own
libraries, those that it needs of others, Python, and glibc.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from torchyard.checks.compare import is_of_runtime
from torchyard.checks.compat.table import TORCH, load_compat_table, torch_libraries, torch_row
from torchyard.checks.loader.companions import is_vendors, without_digest
from torchyard.checks.loader.resolve import is_program, resolver_of
from torchyard.checks.subject import Subject
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.package.contents import Binary
from torchyard.package.elf.symbols import free_names, split_names
from torchyard.package.policy import load_layouts

SYSTEM_SYMBOLS, TORCH_WORDS = "system_symbols.txt", "torch_words.txt"
BESIDE_TORCH = "libraries that torch needs"
_PYTHONS = ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libutil.so.1")
"""Libraries that Python needs, so that every process has them."""
_VERSIONED = ("ld-linux*.so.*", "libgcc_s.so.1", "libstdc++.so.6")
"""Libraries all of whose symbols have versions."""
_OF_STD = re.compile(r"_Z[A-Z]*S[tabsiod]|_ZGV[a-z]")
"""Names of the C++ library, and of vector functions that compilers call."""
_LETTERS = 10
_NAME = re.compile(r"_Z(?:T[hv]n?\d+_(?:n?\d+_)?)?[A-Za-z]*(\d{1,4})")


class Undefined(NamedTuple):
    """A symbol that a file needs, and what may define it but is not at hand.

    `needs` names libraries, or `torch`; if it is empty, nothing defines the symbol.
    """

    symbol: str
    needs: tuple[str, ...]
    is_torchs: bool = False
    """Whether only torch can define it."""

    @property
    def is_missing(self) -> bool:
        """Whether nothing defines it, by the names that torch is known to export."""
        unlikely = not self.is_torchs and leading_word(self.symbol) not in exported_words()
        return not self.needs or (self.needs == (TORCH,) and unlikely)


class _Process(NamedTuple):
    """What a process has that loads a file, besides the package's own libraries."""

    is_python: bool
    has_torch: bool
    binaries: list[Binary]
    unknown: list[str]
    """Libraries of which nothing is known, that may define any symbol."""
    known: list[str]
    """Libraries of the system whose symbols the table has."""
    plain: list[str]
    """Others of the system, which define C functions alone."""
    vendors: list[str]
    """Libraries of GPUs, OpenMP and BLAS, which the table of families is about."""


@lru_cache(maxsize=1)
def undefined_in(subject: Subject) -> Mapping[str, tuple[Undefined, ...]]:
    """Return the undefined symbols of the libraries that Python loads, by member."""
    search, names = _Search(subject), resolver_of(subject).names
    found = ((path, tuple(search.undefined(path))) for path in resolver_of(subject).binaries)
    return {names[path]: symbols for path, symbols in found if symbols}


class _Search:
    """Looks for the definitions of symbols, in one package."""

    def __init__(self, subject: Subject) -> None:
        resolver = resolver_of(subject)
        self._binaries, self._system = resolver.binaries, resolver.system
        self._extra = subject.policy.system
        self._vendors = (*load_layouts().drivers, *torch_row().needed)
        self._beside = resolver.siblings.libraries
        self._own = set(b"".join(b.exports for b in self._binaries.values()).split(b"\0"))
        self._paths = {b.soname: path for path, b in self._binaries.items()} | resolver.by_name
        self._users: dict[str, list[str]] = {}
        for path, binary in self._binaries.items():
            for needed in filter(None, map(self._paths.get, binary.needed)):
                self._users.setdefault(needed, []).append(path)
        self._for_cpu = subject.expected.compute == "cpu"
        self._is_beside_torch = TORCH in resolver.siblings.requirements

    def undefined(self, path: str) -> Iterator[Undefined]:
        """Yield the symbols that a library needs and nothing at hand defines."""
        wanted = free_names(self._binaries[path]) - self._own - _system_names(_PYTHONS)
        wanted = {name for name in wanted if not _is_runtimes(name)}
        if not wanted or is_program(path):
            return
        process = self._process(path)
        wanted -= _system_names(tuple(process.known))
        for binary in process.binaries:
            wanted -= set(split_names(binary.exports))
        table = load_compat_table()
        for raw in sorted(wanted):
            name = raw.decode(errors="backslashreplace")
            if table.is_torchs(name):
                is_near = process.has_torch or process.unknown
                yield Undefined(name, (TORCH,) if is_near else (), is_torchs=True)
            elif process.is_python or process.has_torch:
                yield Undefined(name, tuple(self._candidates(name, process)))

    def _candidates(self, name: str, process: _Process) -> Iterator[str]:
        """Yield what may define a symbol that is not one of torch's own."""
        yield from process.unknown
        if not name.startswith("_Z"):
            yield from process.plain
            if load_compat_table().is_others(name):
                yield from process.vendors
                if (process.has_torch or self._is_beside_torch) and not self._for_cpu:
                    yield BESIDE_TORCH
        if process.has_torch:
            yield TORCH

    def _process(self, path: str) -> _Process:
        """Follow the file, what loads it, and all that these need."""
        loaders = dict.fromkeys([path])
        for one in (waiting := [path]):
            waiting += (user for user in self._users.get(one, ()) if user not in loaders)
            loaders |= dict.fromkeys(waiting)
        process = _Process(
            is_python=any(b"PyInit_" in self._binaries[one].exports for one in loaders),
            has_torch=False,
            binaries=[],
            unknown=[],
            known=[],
            plain=[],
            vendors=[],
        )
        seen: set[str] = set()
        files = [self._binaries[one] for one in loaders]
        for binary in files:
            for library in binary.needed:
                if library in seen:
                    continue
                seen.add(library)
                if library in self._paths:
                    files.append(self._binaries[self._paths[library]])
                elif torch_libraries([library]):
                    process = process._replace(has_torch=True)
                elif library in self._beside:
                    process.binaries.append(self._beside[library])
                    files.append(self._beside[library])
                else:
                    self._sort(library, process)
        return process

    def _sort(self, library: str, process: _Process) -> None:
        """Put a library that is not at hand where it belongs, by its name."""
        if any_match(library, self._extra):
            process.unknown.append(library)
        elif library in _system_symbols():
            process.known.append(library)
        elif any_match(library, _VERSIONED):
            return
        elif any_match(library, self._vendors) or is_vendors(without_digest(library)):
            process.vendors.append(library)
        elif any_match(library, self._system):
            process.plain.append(library)
        else:
            process.unknown.append(library)


def leading_word(symbol: str) -> str:
    """Return how a symbol begins: the outermost namespace, or up to ten letters of a function.

    It is `fbgemm` of `fbgemm::Packed`, and `mkl` of `mkl_blas_dgemm`.
    """
    if symbol.startswith("_Z"):
        found = None if _OF_STD.match(symbol) else _NAME.match(symbol)
        if found is None:
            return ""
        name = symbol[found.end() : found.end() + int(found[1])]
        if "N" in found[0]:
            return name
        symbol = name
    return symbol.lstrip("_").partition("_")[0][:_LETTERS]


@cache
def exported_words() -> frozenset[str]:
    """Return the leading words of what torch exports besides its own; the empty one is std's."""
    lines = read_data(TORCH_WORDS).splitlines()
    return frozenset(("", *(line for line in lines if not line.startswith("#"))))


def _is_runtimes(raw: bytes) -> bool:
    """Return whether a name is one of Python's or of a compiler's runtime."""
    name = raw.decode(errors="backslashreplace")
    is_cxx = _OF_STD.match(name) is not None or is_of_runtime(name)
    return is_cxx or load_compat_table().is_runtimes(name)


@cache
def _system_symbols() -> dict[str, list[bytes]]:
    """Return the symbols of libraries that every system has."""
    parts = (part.partition("]") for part in read_data(SYSTEM_SYMBOLS).split("[")[1:])
    return {library: text.encode().split() for library, _, text in parts}


@cache
def _system_names(libraries: tuple[str, ...]) -> frozenset[bytes]:
    return frozenset(name for library in libraries for name in _system_symbols()[library])
