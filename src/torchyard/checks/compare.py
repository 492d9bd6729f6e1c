"""Differences of two packages, and whether an extension still loads."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from torchyard.checks.expected import Expected, expected_of
from torchyard.model.values import Reported
from torchyard.package.conda.index import conda_index
from torchyard.package.contents import Binary, Contents, PackageFile, VersionNeed, is_library
from torchyard.package.formats import format_of
from torchyard.package.wheel.metadata import about_text, fields_of

_PYTHON_TAG = re.compile(r"\.(cpython|cp)-?\d+t?(?=[-.])")
_METADATA_FOLDER = re.compile(r"^[^/]+\.(dist-info|data)/")
_SITE_PACKAGES = re.compile(r"^lib/python[^/]+/site-packages/")
_CPYTHON = re.compile(r"\.(?:cpython-|cp)(\d+t?)[-.]")
_RUNTIME = re.compile(r"(?:libstdc\+\+|libc\+\+|libgcc_s|msvcp|vcruntime)[\d._-]", re.IGNORECASE)
"""Libraries of C++ itself, by how their names begin."""

_OF_RUNTIME = re.compile(
    r"_{1,2}Z(?:n[wa]|d[la]|(?:T[VTIShv]|GV|NK?)*(?:S[tabsiod]|9__gnu_cxx|10__cxxabiv1))"
    r"(?!.*N(?!9__gnu_cxx|10__cxxabiv1)\d).*|_{2,3}(?:cxa_|gxx_personality|dynamic_cast).*"
)
"""Their symbols; not templates over types of others, such as std::vector<at::Tensor>."""

_LINKERS = {"_init", "_fini", "_edata", "_end", "__bss_start"}
"""Symbols that linkers add to every library."""


class Sizes(Reported):
    """Bytes of the same thing in both packages; 0 where it is not there."""

    before: int
    after: int

    @property
    def grown(self) -> int:
        return self.after - self.before


class Moved(Reported):
    """What only the first has, and what only the second."""

    removed: tuple[str, ...]
    added: tuple[str, ...]


class Rewritten(Reported):
    """A text of both, where it differs."""

    name: str
    before: str
    after: str


class LibraryChange(Reported, kw_only=True):
    """A library that is in both packages, and not the same; only what differs is listed."""

    name: str = msgspec.field(name="member")
    size: Sizes = msgspec.field(name="bytes")
    sections: dict[str, Sizes]
    device: dict[str, Sizes]
    exports: Moved
    needed: Moved
    needs: Moved = msgspec.field(name="version_needs")
    texts: tuple[Rewritten, ...] = msgspec.field(name="fields")
    """Its soname, rpath, runpath and machine, where they differ."""


class ExtensionVerdict(Reported, kw_only=True):
    """Whether an extension that was built against the first package loads with the second.

    `linked` are the first package's libraries that it needs, `uses` counts their symbols.
    """

    extension: str
    loads: bool
    binaries: int
    """How many programs and libraries it has."""
    linked: tuple[str, ...]
    uses: int
    reasons: tuple[str, ...]
    symbols: tuple[str, ...] = msgspec.field(name="missing_symbols")
    """The symbols that it imports from the first and that the second does not have."""


class PackageDiff(Reported, kw_only=True):
    """`torchyard diff --json`: `removed` and `added` are members with their sizes.

    Names are those of the second package where a file is in both.
    """

    version: Literal[1] = 1
    before: str
    after: str
    size: Sizes = msgspec.field(name="bytes")
    unpacked: Sizes = msgspec.field(name="unpacked_bytes")
    same: int
    """How many files are the same in both."""
    removed: dict[str, int]
    added: dict[str, int]
    changed: dict[str, Sizes]
    libraries: tuple[LibraryChange, ...]
    device: dict[str, Sizes]
    metadata: tuple[Rewritten, ...]
    extension: ExtensionVerdict | None

    @property
    def is_equal(self) -> bool:
        return not (self.removed or self.added or self.changed)


class Extension(NamedTuple):
    """What is built against a package: a wheel, or one library, of which no more is known."""

    name: str
    binaries: dict[str, Binary]
    expected: Expected = Expected()


def compare_packages(
    before: Contents, after: Contents, extension: Extension | None = None
) -> PackageDiff:
    """Put two packages side by side; members are the same if they are at the same place.

    The extension, if one is given, was built against the first.
    """
    roots = [] if before.format == after.format else [_root(before), _root(after)]
    old, new = _places(before, roots), _places(after, roots)
    both = [(old[place], file) for place, file in new.items() if place in old]
    changed = [(a, b) for a, b in both if (a.digest, a.link) != (b.digest, b.link)]
    return PackageDiff(
        before=before.file_name,
        after=after.file_name,
        size=Sizes(before.size, after.size),
        unpacked=Sizes(_unpacked(before), _unpacked(after)),
        same=len(both) - len(changed),
        removed={file.name: file.size for place, file in old.items() if place not in new},
        added={file.name: file.size for place, file in new.items() if place not in old},
        changed={b.name: Sizes(a.size, b.size) for a, b in changed},
        libraries=tuple(
            _library(b.name, Sizes(a.size, b.size), a.binary, b.binary)
            for a, b in changed
            if a.binary and b.binary
        ),
        device=_differing(device_sizes(before), device_sizes(after)),
        metadata=tuple(_metadata(before, after)),
        extension=will_load(extension, before, after) if extension else None,
    )


def device_sizes(contents: Contents) -> Counter[str]:
    """Bytes of device code for each architecture, in all libraries together."""
    sizes: Counter[str] = Counter()
    for file in contents.files.values():
        if file.binary:
            sizes += _device(file.binary)
    return sizes


def _device(binary: Binary) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for code in binary.device:
        sizes[code.arch] += code.size
    return sizes


def _unpacked(contents: Contents) -> int:
    return sum(file.size for file in contents.files.values())


def _places(contents: Contents, roots: Sequence[str]) -> dict[str, PackageFile]:
    """The files by where they belong, whatever version and Python it is; and below these roots."""
    places: dict[str, PackageFile] = {}
    for file in contents.files.values():
        place = _SITE_PACKAGES.sub("", file.name) if roots else file.name
        place = _PYTHON_TAG.sub(r".\1-*", _METADATA_FOLDER.sub(r"*.\1/", place))
        for root in roots:
            place = place.removeprefix(root)
        places[file.name if place in places else place] = file
    return places


def _root(contents: Contents) -> str:
    """The folder that has nearly all: `torch/` of a wheel is `libtorch/` of a zip."""
    if not format_of(contents).IN_ONE_FOLDER:
        return ""
    sizes: Counter[str] = Counter()
    for file in contents.files.values():
        sizes[file.name.partition("/")[0]] += file.size
    return f"{sizes.most_common(1)[0][0]}/" if sizes else ""


def _library(name: str, size: Sizes, before: Binary, after: Binary) -> LibraryChange:
    fields: dict[str, Callable[[Binary], str]] = {
        "machine": lambda binary: binary.machine,
        "soname": lambda binary: binary.soname,
        "rpath": lambda binary: binary.rpath,
        "runpath": lambda binary: binary.runpath,
    }
    return LibraryChange(
        name=name,
        size=size,
        sections=_differing(before.sections, after.sections),
        device=_differing(_device(before), _device(after)),
        exports=_moved(_own_exports(before), _own_exports(after)),
        needed=_moved(before.needed, after.needed),
        needs=_moved(map(_spelt, before.needs), map(_spelt, after.needs)),
        texts=tuple(
            Rewritten(field, text(before), text(after))
            for field, text in fields.items()
            if text(before) != text(after)
        ),
    )


def _symbols(names: bytes) -> list[str]:
    return names.decode(errors="backslashreplace").split("\0")[:-1]


def _own_exports(binary: Binary) -> set[str]:
    return set(_symbols(binary.exports)) - _LINKERS


def _spelt(need: VersionNeed) -> str:
    return f"{need.version} of {need.library}"


def _moved(before: Iterable[str], after: Iterable[str]) -> Moved:
    old, new = set(before), set(after)
    return Moved(tuple(sorted(old - new)), tuple(sorted(new - old)))


def _differing(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, Sizes]:
    pairs = {name: Sizes(before.get(name, 0), after.get(name, 0)) for name in {**before, **after}}
    return {name: sizes for name, sizes in pairs.items() if sizes.grown}


def _metadata(before: Contents, after: Contents) -> Iterator[Rewritten]:
    """The fields that differ; one that may be repeated counts as one text."""
    old, new = _fields(before), _fields(after)
    for field in {**old, **new}:
        if old.get(field) != new.get(field):
            yield Rewritten(field, old.get(field, ""), new.get(field, ""))


def _fields(contents: Contents) -> dict[str, str]:
    """What a package says of itself: METADATA and WHEEL, or the index of a conda package."""
    found: dict[str, str] = {}
    for name in ("METADATA", "WHEEL"):
        for field, value in fields_of(about_text(contents, name) or b""):
            known = field.lower()  # upper case has no meaning in them
            found[known] = f"{found[known]}\n{value}" if known in found else value
    index = conda_index(contents)
    for field, value in msgspec.to_builtins(index).items() if index else ():
        found[field] = "\n".join(map(str, value)) if isinstance(value, list) else str(value)
    return found


def will_load(extension: Extension, before: Contents, after: Contents) -> ExtensionVerdict:
    """Return whether an extension built against one package loads with another one.

    Only what it takes from the first package counts: the rest comes from Python or the system, or
    it brings it along.
    """
    binaries = extension.binaries
    own = {_base(name) for name in binaries}
    old, new = (
        {name: one for name, one in _libraries(contents).items() if name not in own}
        for contents in (before, after)
    )
    used, gone = set[str](), set[str]()
    for binary in binaries.values():
        imports = set(_symbols(binary.imports))
        takes = _provided(binary, imports, binaries, old)
        used |= takes
        gone |= takes - _provided(binary, takes, binaries, new)
    reasons = [*_python_reasons(extension, after), *_machine_reasons(binaries, new)]
    reasons += _library_reasons(binaries.values(), old, new)
    needed = {_base(name) for binary in binaries.values() for name in binary.needed}
    return ExtensionVerdict(
        extension=extension.name,
        loads=not (reasons or gone),
        binaries=len(binaries),
        linked=tuple(sorted(needed & old.keys())),
        uses=len(used),
        reasons=tuple(dict.fromkeys(reasons)),
        symbols=tuple(sorted(gone)),
    )


def extension_of(contents: Contents) -> Extension:
    """The programs and libraries of a package that was built against another one."""
    binaries = {file.name: file.binary for file in contents.files.values() if file.binary}
    return Extension(contents.file_name, binaries, expected_of(contents))


def _libraries(contents: Contents) -> dict[str, Binary]:
    """What of a package an extension can be linked with, by the names that it is needed by."""
    found: dict[str, Binary] = {}
    for file in contents.files.values():
        if file.binary and is_library(file.name):
            found[_base(file.name)] = file.binary
            found[_base(file.binary.soname)] = file.binary
    return found


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _provided(
    binary: Binary, wanted: set[str], own: Mapping[str, Binary], libraries: Mapping[str, Binary]
) -> set[str]:
    """Which symbols a binary gets from a package's libraries: those it needs, and what they need.

    Others do not count, as the loader asks only these. What the C++ library exports is its own,
    even if a library of the package has a copy.
    """
    beside = {_base(name): one for name, one in own.items()}
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [binary]
    while waiting:
        for name in map(_base, waiting.pop().needed):
            if name in seen:
                continue
            seen.add(name)
            if name in libraries:
                found |= wanted.intersection(_symbols(libraries[name].exports))
                waiting.append(libraries[name])
            elif name in beside:
                waiting.append(beside[name])
    if any(_RUNTIME.match(name) for name in seen - libraries.keys()):
        found = {name for name in found if not is_of_runtime(name)}
    return found


def is_of_runtime(symbol: str) -> bool:
    """Return whether a symbol is that of a C++ library, whoever else may have a copy of it."""
    return _OF_RUNTIME.fullmatch(symbol) is not None


def _library_reasons(
    binaries: Iterable[Binary], old: Mapping[str, Binary], new: Mapping[str, Binary]
) -> Iterator[str]:
    """Libraries, and versions of them, that the first package has and the second has not."""
    for binary in binaries:
        for library in map(_base, binary.needed):
            if library in old and library not in new:
                yield f"it needs {library}, which is no longer there"
        for library, version in binary.needs:
            has = new.get(library)
            if library in old and has and version not in has.defines:
                yield f"it needs {version} of {library}, which no longer defines it"


def _machine_reasons(
    binaries: Mapping[str, Binary], libraries: Mapping[str, Binary]
) -> Iterator[str]:
    there = {machine for one in libraries.values() for machine in one.machine.split(",")}
    for name, binary in binaries.items():
        if there and there.isdisjoint(binary.machine.split(",")):
            has = ", ".join(sorted(there))
            yield f"{_base(name)} is for {binary.machine}, the package for {has}"


def _python_reasons(extension: Extension, after: Contents) -> Iterator[str]:
    """Modules say in their names for which Python they are; those of abi3 are for any later one."""
    python = expected_of(after).abi.removeprefix("cp")
    if not python.rstrip("t").isdigit():
        return
    has = f"the package for {_dotted(python)}"
    for name in extension.binaries:
        tag = _CPYTHON.search(_base(name))
        if tag and tag[1] != python:
            yield f"{_base(name)} is for Python {_dotted(tag[1])}, {has}"
    oldest = extension.expected.python.removeprefix("cp")
    is_abi3 = extension.expected.abi == "abi3" and oldest.isdigit()
    if is_abi3 and _minor(oldest) > _minor(python):
        yield f"it is for Python {_dotted(oldest)} and later, {has}"


def _dotted(tag: str) -> str:
    return f"{tag[0]}.{tag[1:]}"


def _minor(tag: str) -> int:
    """The minor version of `312` or `313t`."""
    return int(tag[1:].rstrip("t"))
