"""Differences between two packages."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from torchyard.model.values import Reported
from torchyard.package.conda.index import ABOUT, INDEX, RUN_EXPORTS, json_fields
from torchyard.package.contents import Binary, Contents, PackageFile, VersionNeed
from torchyard.package.formats import format_of
from torchyard.package.wheel.metadata import about_text, fields_of

_PYTHON_TAG = re.compile(r"\.(cpython|cp)-?\d+t?(?=[-.])")
_METADATA_FOLDER = re.compile(r"^[^/]+\.(dist-info|data)/")
_SITE_PACKAGES = re.compile(r"^lib/python[^/]+/site-packages/")
_CONDA_FIELDS = {INDEX: "", ABOUT: "about.", RUN_EXPORTS: "run_exports."}
"""The files with fields of a conda package, and what their names begin with in reports."""

_LINKERS = {"_init", "_fini", "_edata", "_end", "__bss_start"}
"""Symbols that linkers add to every library."""


class Sizes(Reported):
    """Sizes in both packages; 0 if missing."""

    before: int
    after: int

    @property
    def grown(self) -> int:
        return self.after - self.before


class Moved(Reported):
    """Names only in the first package, and only in the second."""

    removed: tuple[str, ...]
    added: tuple[str, ...]


class Rewritten(Reported):
    """A text that differs."""

    name: str
    before: str
    after: str


class LibraryChange(Reported, kw_only=True):
    """A library that differs between the packages, with its differences."""

    name: str = msgspec.field(name="member")
    size: Sizes = msgspec.field(name="bytes")
    sections: dict[str, Sizes]
    device: dict[str, Sizes]
    exports: Moved
    needed: Moved
    needs: Moved = msgspec.field(name="version_needs")
    texts: tuple[Rewritten, ...] = msgspec.field(name="fields")
    """Its soname, rpath, runpath and machine, if they differ."""


class PackageDiff(Reported, kw_only=True):
    """`torchyard diff --json`: `removed` and `added` are members with their sizes.

    Files in both have their names in the second package.
    """

    version: Literal[1] = 1
    before: str
    after: str
    size: Sizes = msgspec.field(name="bytes")
    unpacked: Sizes = msgspec.field(name="unpacked_bytes")
    same: int
    """The number of equal files."""
    removed: dict[str, int]
    added: dict[str, int]
    changed: dict[str, Sizes]
    libraries: tuple[LibraryChange, ...]
    device: dict[str, Sizes]
    metadata: tuple[Rewritten, ...]

    @property
    def is_equal(self) -> bool:
        return not (self.removed or self.added or self.changed)


def compare_packages(before: Contents, after: Contents) -> PackageDiff:
    """Compare two packages; members correspond if their normalised paths are equal."""
    roots = [] if before.format == after.format else [_root(before), _root(after)]
    old, new = _files_by_path(before, roots), _files_by_path(after, roots)
    both = [(old[path], file) for path, file in new.items() if path in old]
    changed = [(a, b) for a, b in both if (a.digest, a.link) != (b.digest, b.link)]
    return PackageDiff(
        before=before.file_name,
        after=after.file_name,
        size=Sizes(before.size, after.size),
        unpacked=Sizes(_unpacked(before), _unpacked(after)),
        same=len(both) - len(changed),
        removed={file.name: file.size for path, file in old.items() if path not in new},
        added={file.name: file.size for path, file in new.items() if path not in old},
        changed={b.name: Sizes(a.size, b.size) for a, b in changed},
        libraries=tuple(
            _library(b.name, Sizes(a.size, b.size), a.binary, b.binary)
            for a, b in changed
            if a.binary and b.binary
        ),
        device=_differing(device_sizes(before), device_sizes(after)),
        metadata=tuple(_metadata(before, after)),
    )


def device_sizes(contents: Contents) -> Counter[str]:
    """Return the bytes of device code for each architecture in all libraries."""
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


def _files_by_path(contents: Contents, roots: Sequence[str]) -> dict[str, PackageFile]:
    """Return the files by path below these roots, without versions and Python tags."""
    files: dict[str, PackageFile] = {}
    for file in contents.files.values():
        path = _SITE_PACKAGES.sub("", file.name) if roots else file.name
        path = _PYTHON_TAG.sub(r".\1-*", _METADATA_FOLDER.sub(r"*.\1/", path))
        for root in roots:
            path = path.removeprefix(root)
        files[file.name if path in files else path] = file
    return files


def _root(contents: Contents) -> str:
    """Return the folder with nearly all files: `torch/` of a wheel is `libtorch/` of a zip."""
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
    """Yield the fields that differ; repeated ones count as one text."""
    old, new = _fields(before), _fields(after)
    for field in {**old, **new}:
        if old.get(field) != new.get(field):
            yield Rewritten(field, old.get(field, ""), new.get(field, ""))


def _fields(contents: Contents) -> dict[str, str]:
    """Return a package's fields of METADATA and WHEEL, or of a conda package's JSON files."""
    found: dict[str, str] = {}
    for name in ("METADATA", "WHEEL"):
        for field, value in fields_of(about_text(contents, name) or b""):
            key = field.lower()  # their case does not matter
            found[key] = f"{found[key]}\n{value}" if key in found else value
    for member, prefix in _CONDA_FIELDS.items():
        for field, stated in json_fields(contents, member).items():
            lines = stated if isinstance(stated, list) else [stated]
            found[prefix + field] = "\n".join(map(str, lines))
    return found
