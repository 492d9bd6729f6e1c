"""Rules about symbols: requirements of the system, and exports.

The names of a library are one block of zero-terminated bytes. There may be 200,000, so they are
searched with regular expressions, never one by one.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from torchyard.checks.compat.extension import admitted_releases
from torchyard.checks.compat.stable_names import torch_releases
from torchyard.checks.compat.undefined import undefined_in
from torchyard.checks.loader.companions import is_vendors
from torchyard.checks.loader.resolve import is_program, resolver_of
from torchyard.checks.rule import Hit, Severity, rule
from torchyard.checks.rules.linking import and_others, failing
from torchyard.checks.subject import Subject
from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.model.values import Value
from torchyard.package.contents import Binary
from torchyard.package.wheel.manylinux import above_ceiling

_OLD = re.compile(rb"Ss|St4listI")
_NEW = re.compile(rb"__cxx11")
_TOKEN = re.compile(
    rb"S[0-9A-Z]*_|T[0-9]*_|L[a-z]n?[0-9]+E|A[0-9]+_|[CD][0-9]|(Ss|St4listI)|([0-9]{1,9})|.",
    re.DOTALL,
)
_OF_STD = re.compile(rb"_Z(?:GTt|GV|T[CISTV]|Z)*N?K?(?:S[st]|9__gnu_cxx)")
_LABEL = re.compile(rb"_GLIBCXX_USE_CXX11_ABI=([01])")


class Export(Value, kw_only=True):
    """Names that a library should not export, and why."""

    name: str
    pattern: str
    reason: str
    hint: str


class PythonHints(Value, kw_only=True):
    """Functions that show for which kind of CPython a file was compiled."""

    free_threaded: tuple[str, ...]
    locked: tuple[str, ...]
    debug: tuple[str, ...]


class SymbolTable(Value, kw_only=True):
    """The whole of `data/symbols.toml`."""

    exceptions: tuple[str, ...]
    forbidden: tuple[Export, ...]
    leaked: tuple[Export, ...]
    python: PythonHints


@cache
def load_symbols() -> SymbolTable:
    """Read the table and check it."""
    return parse_symbols(read_data("symbols.toml"))


def parse_symbols(text: str) -> SymbolTable:
    """Read the text of the table."""
    return parse_table("symbols.toml", text, SymbolTable, _problems)


def _problems(table: SymbolTable) -> Iterator[str]:
    for row in (*table.forbidden, *table.leaked):
        try:
            re.compile(row.pattern)
        except re.error as error:
            yield f"has a bad pattern for {row.name}: {error}"


@rule("symbols-ceiling", Severity.ERROR, "it does not load on systems that the tag promises")
def ceiling(subject: Subject) -> Iterator[Hit]:
    """A file needs a newer glibc, libstdc++ or libgcc than the wheel's platform tag promises.

    `manylinux_2_28` promises that the wheel works with glibc 2.28 or newer; `manylinux2014` stands
    for 2.17. For each there is a list of the symbol versions that such systems have. If a file
    needs a newer one, installing succeeds and importing fails: "version GLIBC_2.34 not found".
    Versions of a library that is in the package itself do not count, and wheels without a manylinux
    tag are not checked.

    Compile on an older system, or give the wheel a tag that is true: `torchyard repair
    --platform-tag`.
    """
    resolver = resolver_of(subject)
    needs = {
        path: {need.version for need in binary.needs if need.library not in resolver.by_name}
        for path, binary in resolver.binaries.items()
    }
    glibc, above = above_ceiling(subject.expected.platforms, set().union(*needs.values()))
    for path, versions in needs.items():
        if newer := versions & above:
            yield Hit(
                f"needs {', '.join(highest(newer))}, newer than systems with glibc {glibc} have",
                resolver.names[path],
                "compile it on an older system, or give the wheel another tag",
            )


def highest(versions: Iterable[str]) -> list[str]:
    """Return the highest version of each library: GLIBC_2.34 of GLIBC_2.29 and GLIBC_2.34."""
    newest: dict[str, str] = {}
    for version in sorted(versions, key=_numbers):
        newest[version.rpartition("_")[0]] = version
    return sorted(newest.values())


def _numbers(version: str) -> list[tuple[int, str]]:
    """Return a key that sorts versions by number, so that 10 comes after 9."""
    return [(len(part), part) for part in version.rpartition("_")[2].split(".")]


def old_strings(block: bytes) -> list[bytes]:
    """Return the names with the old std::string, except the standard library's own."""
    return [name for name in _names_with(_OLD, block) if _uses_old(name)]


def new_strings(block: bytes) -> list[bytes]:
    """Return the names with the new std::string, except the standard library's own."""
    return [name for name in _names_with(_NEW, block) if not _OF_STD.match(name)]


def _names_with(pattern: re.Pattern[bytes], block: bytes) -> Iterator[bytes]:
    end = 0
    for match in pattern.finditer(block):
        if match.start() >= end:
            end = block.find(b"\0", match.start())
            yield block[block.rfind(b"\0", 0, match.start()) + 1 : end]


def _uses_old(name: bytes) -> bool:
    """Return whether a mangled name uses the old std::string, not just a similar word."""
    if not name.startswith(b"_Z") or _OF_STD.match(name):
        return False
    offset = 2
    while (token := _TOKEN.match(name, offset)) is not None:
        if token[1]:
            return True
        offset = token.end() + (int(token[2]) if token[2] else 0)
    return False


@rule("symbols-abi", Severity.ERROR, "libraries with the other ABI can't be linked with it")
def abi(subject: Subject) -> Iterator[Hit]:
    """Libraries of the package were compiled with another std::string ABI than it declares.

    Since gcc 5 there are two ABIs: with `_GLIBCXX_USE_CXX11_ABI=1`, the default, functions have
    names with `__cxx11`; with `=0` they have the old ones. Functions that take a string can only be
    called by code that was compiled the same way. So all libraries of a package must use the ABI
    that its CMake files or its name (`cxx11-abi`) declare to those who link with it. NVIDIA's
    libraries are not checked, nor is libstdc++, which has both. In a package that declares none,
    `symbols-undefined` finds calls of functions with the other ABI.

    Compile everything with the same setting.
    """
    resolver, label = resolver_of(subject), _label(subject)
    for path, binary in resolver.binaries.items() if label else ():
        if is_vendors(posixpath.basename(path)) or _is_runtime(path, binary):
            continue
        is_new = label == "1"
        names = (
            old_strings(binary.exports + binary.imports) if is_new else new_strings(binary.exports)
        )
        if names:
            other, promised = ("old", "new") if is_new else ("new", "old")
            what = (
                f"uses {len(names)} functions with the {other} std::string, though the {promised}"
            )
            what = f"{what} one is promised: {names[0].decode(errors='replace')}"
            yield Hit(what, resolver.names[path], f"compile it with _GLIBCXX_USE_CXX11_ABI={label}")


def _label(subject: Subject) -> str:
    """Return the std::string ABI that the package declares to dependent builds."""
    if "cxx11-abi" in subject.contents.file_name:
        return "1"
    for name, text in subject.contents.texts.items():
        if name.endswith("Config.cmake") and (match := _LABEL.search(text)):
            return match[1].decode()
    return ""


@rule("symbols-undefined", Severity.ERROR, "what needs it can't be imported")
def undefined(subject: Subject) -> Iterator[Hit]:
    """A library needs a symbol that nothing defines.

    It was linked, as shared libraries may lack symbols until they are loaded; loading it fails with
    "undefined symbol", because Python binds all of them at once. The usual cause is a source file
    that was left out of the build, a function that is declared and not written, or a library that
    was not linked with. A symbol may be defined by the package itself, by the libraries that a file
    needs, by Python, or by glibc. torch's symbols are found only if the file needs one of torch's
    libraries, whatever else has loaded them before. Weak symbols may be missing. References with a
    symbol version (`memcpy@GLIBC_2.14`) were found in a library of the system when the file was
    linked.

    Nothing is reported if it is not known: a symbol that a needed library of another package may
    define, unless that package is checked together with it, and libraries that only another program
    than Python loads. Which symbols torch itself has is the matter of `torch-symbols`; here it
    counts how the names begin that its known releases export (torchyard's `torch_words.txt`).

    Compile what defines the symbol into the package, or link with the library that has it.
    """
    resolver = resolver_of(subject)
    paths = {name: path for path, name in resolver.names.items()}
    is_known = bool(admitted_releases(subject, torch_releases()))
    for member, symbols in undefined_in(subject).items():
        for symbol in (s for s in symbols if s.is_missing and (is_known or not s.needs)):
            why = "and nothing that it loads defines it"
            if symbol.is_torchs:
                why = "which torch defines, but it is linked with none of torch's libraries"
            what = f"needs `{symbol.symbol}`, {why}{failing(resolver, paths[member])}"
            yield Hit(what, member, "compile what defines it into the package, or link with it")


@rule("symbols-forbidden", Severity.ERROR, "it takes over functions of other libraries")
def forbidden(subject: Subject) -> Iterator[Hit]:
    """A library exports functions that belong to another one.

    The loader takes the first definition of a name that it meets, for all libraries in the process.
    A library that exports a statically linked C++ runtime replaces parts of the runtime of all
    others: exceptions are no longer caught, streams are never initialised, memory is freed by the
    wrong allocator.

    Link with the shared library, or hide the symbols of static libraries.
    """
    yield from _exports(subject, load_symbols().forbidden)


@rule("symbols-leaked", Severity.WARNING, "it may clash with other libraries in the process")
def leaked(subject: Subject) -> Iterator[Hit]:
    """A library exports functions of a static library that was linked into it.

    They may replace those of another library in another version. PyTorch's own wheels export
    `std::filesystem` (pytorch#133437) and protobuf, so it is not always fatal, but it has caused
    crashes.

    Hide the symbols of static libraries.
    """
    yield from _exports(subject, load_symbols().leaked)


def _is_runtime(path: str, binary: Binary) -> bool:
    """Return whether a library is the runtime itself, by its file name or soname."""
    exceptions = load_symbols().exceptions
    return any(any_match(name, exceptions) for name in (posixpath.basename(path), binary.soname))


def _exports(subject: Subject, rows: Iterable[Export]) -> Iterator[Hit]:
    resolver = resolver_of(subject)
    for row in rows:
        pattern = re.compile(rb"\0(?:%b)(?=\0)" % row.pattern.encode())
        for path, binary in resolver.binaries.items():
            if is_program(path) or _is_runtime(path, binary):
                continue
            names = [match[0][1:] for match in pattern.finditer(b"\0" + binary.exports)]
            if names:
                first = names[0].decode(errors="replace")
                what = f"shows {len(names)} functions of {row.name} ({first} …): {row.reason}"
                yield Hit(what, resolver.names[path], row.hint)


@rule("symbols-stack", Severity.ERROR, "it makes memory errors easier to exploit")
def stack(subject: Subject) -> Iterator[Hit]:
    """A file requires an executable stack.

    The loader then makes the whole process's stack executable; hardened systems, and glibc 2.41 for
    libraries that are loaded later, refuse to load it. The usual cause is an assembler file without
    a `.note.GNU-stack` section.

    Add `.section .note.GNU-stack,"",@progbits` to that file, or link with `-Wl,-z,noexecstack`.
    """
    hint = "link with -Wl,-z,noexecstack"
    yield from _flagged(subject, "has an executable stack", hint, lambda b: b.executable_stack)


@rule("symbols-textrel", Severity.ERROR, "it is slow to load, or refused")
def textrel(subject: Subject) -> Iterator[Hit]:
    """A file has relocations in its program text (TEXTREL).

    The loader has to modify these pages: they cannot be shared between processes, must be writable
    during relocation, and SELinux forbids that. Some object was compiled without `-fPIC`.

    Compile it with `-fPIC`; `-Wl,-z,text` makes the linker say where.
    """
    hint = "compile all of it with -fPIC; link with -Wl,-z,text to see where"
    yield from _flagged(subject, "has text relocations", hint, lambda b: b.text_relocations)


@rule("symbols-hash", Severity.WARNING, "symbols are found slowly, or not at all")
def gnu_hash(subject: Subject) -> Iterator[Hit]:
    """A file has no GNU hash table of its symbols.

    The loader then uses the older table, which is several times slower, or, if there is none
    either, can't find symbols. Such a file comes from a linker older than 2006, or was damaged by a
    tool.

    Link with `-Wl,--hash-style=gnu`.
    """
    hint = "link with -Wl,--hash-style=gnu"
    yield from _flagged(subject, "has no GNU hash table", hint, lambda b: not b.gnu_hash)


@rule("symbols-build-id", Severity.NOTE, "debuggers can't find its symbols")
def build_id(subject: Subject) -> Iterator[Hit]:
    """A file has no build id.

    It is the name by which debuggers, profilers and crash reports find the symbols that were
    stripped from a file. Without one, two builds cannot be told apart.

    Link with `-Wl,--build-id`.
    """
    hint = "link with -Wl,--build-id"
    yield from _flagged(subject, "has no build id", hint, lambda b: not b.build_id)


def _flagged(
    subject: Subject, what: str, hint: str, is_wrong: Callable[[Binary], bool]
) -> Iterator[Hit]:
    resolver = resolver_of(subject)
    paths = [path for path, binary in resolver.binaries.items() if is_wrong(binary)]
    if paths:
        yield Hit(f"{what}{and_others(len(paths) - 1)}", resolver.names[paths[0]], hint)
