"""Read ELF files on disk: the loader's view, with symbols and sections.

Files are mapped, so only needed pages are read. Dynamic data is found by the program
headers alone, as in the loader, so files without sections work, too.
"""

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.package.contents import VersionNeed
from torchyard.package.elf.image import (
    DAMAGED,
    MAGIC,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_SYMTAB,
    Image,
    Section,
    text_at,
)

_SHN_UNDEF = 0
_SPECIAL_SECTIONS = {0xFFF1: "*ABS*", 0xFFF2: "*COM*"}
_NO_NAME = frozenset((3, 4))
"""Kinds of symbols for sections and source files, which programs can't use."""

_KINDS = ("notype", "object", "func", "section", "file", "common", "tls", "", "", "", "ifunc")


class Elf(NamedTuple):
    """The fields for packaging. Lists of directories are unchanged, with colons."""

    is_64: bool
    machine: str
    dynamic: bool
    soname: str
    needed: tuple[str, ...]
    rpath: str
    runpath: str
    build_id: str
    versions: tuple[str, ...]
    """Symbol versions that other libraries must provide: `GLIBC_2.34`."""


class Symbol(NamedTuple):
    """A symbol that a file defines, with its kind and section."""

    name: str
    kind: str
    section: str


@contextmanager
def _opened(path: Path) -> Iterator[Image | None]:
    """Map a file; yield None if it is not an ELF file."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            yield None
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                yield Image(lambda offset, size: data[offset : offset + size], len(data))
            except DAMAGED as error:
                msg = f"`{path}` starts like an ELF file but is damaged: {error}"
                raise BuildError(msg, hint="build it again; it may have been cut off") from error


def read_elf(path: Path) -> Elf | None:
    """Read the loader's view; None if the file is not an ELF file."""
    with _opened(path) as image:
        if image is None:
            return None
        loaded = image.loaded()
        return Elf(
            is_64=image.is_64,
            machine=image.machine,
            dynamic=loaded.dynamic,
            soname=loaded.soname,
            needed=loaded.needed,
            rpath=loaded.rpath,
            runpath=loaded.runpath,
            build_id=image.build_id(),
            versions=tuple(dict.fromkeys(need.version for need in loaded.needs)),
        )


def versioned_symbols(path: Path) -> list[tuple[str, VersionNeed]]:
    """Return the versioned symbols that a file needs from other libraries."""
    with _opened(path) as image:
        if image is None:
            return []
        start, count = image.symbol_table()
        needs, versions = dict(image.version_needs()), image.symbol_versions(0, count)
        step = 24 if image.is_64 else 16
        return [
            (image.name(image.unpack("I", start + number * step)[0]), needs[version])
            for number, version in enumerate(versions)
            if version in needs
        ]


def symbols(path: Path) -> set[Symbol]:
    """Return every symbol that a file defines, including those for debuggers only."""
    found: set[Symbol] = set()
    with _opened(path) as image:
        if image is None:
            return found
        sections = image.sections
        for section in sections:
            if section.kind in (SHT_SYMTAB, SHT_DYNSYM):
                found.update(_symbols_in(image, section, sections))
    return found


def _symbols_in(image: Image, table: Section, sections: list[Section]) -> Iterator[Symbol]:
    names = image.read(sections[table.link].offset, sections[table.link].size)
    part = image.read(table.offset, table.size)
    for row in struct.iter_unpack(image.order + ("IBBHQQ" if image.is_64 else "IIIBBH"), part):
        name, info, index = (row[0], row[1], row[3]) if image.is_64 else (row[0], row[3], row[5])
        kind = info & 15
        if index == _SHN_UNDEF or kind in _NO_NAME:
            continue
        section = (
            sections[index].name if index < len(sections) else _SPECIAL_SECTIONS.get(index, "")
        )
        kind_name = _KINDS[kind] if kind < len(_KINDS) else f"kind {kind}"
        yield Symbol(text_at(names, name), kind_name, section)


def symbol_difference(a: Path, b: Path) -> tuple[list[str], list[str]]:
    """Return the names defined only in the first file, and those defined only in the second.

    A symbol with another kind or section in the other file is in both lists.
    """
    first, second = symbols(a), symbols(b)
    return sorted({s.name for s in first - second}), sorted({s.name for s in second - first})


def section_names(path: Path) -> tuple[str, ...]:
    """Return the names of all sections, in order."""
    with _opened(path) as image:
        return tuple(section.name for section in image.sections) if image else ()


def section_difference(a: Path, b: Path) -> list[str]:
    """Return the names of the sections that differ between two files."""
    first, second = _section_digests(a), _section_digests(b)
    names = first.keys() | second.keys()
    return sorted(name for name in names if first.get(name) != second.get(name))


def _section_digests(path: Path) -> dict[str, str]:
    with _opened(path) as image:
        if image is None:
            return {}
        found: dict[str, str] = {}
        for section in image.sections:
            stored = 0 if section.kind == SHT_NOBITS else section.size
            part = image.read(section.offset, stored)
            digest = f"{section.size} {sha256(part).hexdigest()}"
            found[section.name] = f"{found.get(section.name, '')} {digest}"
        return found
