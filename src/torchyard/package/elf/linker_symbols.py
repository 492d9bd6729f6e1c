"""The symbols of objects, static and shared libraries, from a linker's view."""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.package.elf.image import DAMAGED, MAGIC, SHT_DYNSYM, SHT_SYMTAB, Image, Section

_ARCHIVE = b"!<arch>\n"
_MEMBER = 60
"""The length of a member's header in an archive."""
_SIZE = slice(48, 58)
_LAST_LOCAL = 15
"""The largest `info` of symbols that other files can't use."""


class LinkerSymbols(NamedTuple):
    """The names that a file exports, and those it needs from other files."""

    defined: frozenset[bytes]
    needed: frozenset[bytes]


def read_linker_symbols(path: Path, mention: bytes = b"") -> LinkerSymbols:
    """Read an object, an archive of objects, or a shared library; empty for other files.

    With `mention`, skip files and members that do not contain these bytes.
    """
    defined: set[bytes] = set()
    needed: set[bytes] = set()
    with path.open("rb") as file:
        if not file.read(1):
            return LinkerSymbols(frozenset(), frozenset())
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                if data.find(mention) >= 0:
                    for start, size in _images(data):
                        if data.find(mention, start, start + size) >= 0:
                            _collect(_image(data, start, size), defined, needed)
            except DAMAGED as error:
                msg = f"`{path}` starts like an object file but is damaged: {error}"
                raise BuildError(msg, hint="build it again; it may have been cut off") from error
    return LinkerSymbols(frozenset(defined), frozenset(needed - defined))


def _images(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield the offsets and sizes of the ELF files in a file."""
    if data[: len(MAGIC)] == MAGIC:
        yield 0, len(data)
    if data[: len(_ARCHIVE)] != _ARCHIVE:
        return
    offset = len(_ARCHIVE)
    while offset + _MEMBER <= len(data):
        size = int(data[offset : offset + _MEMBER][_SIZE])
        if size < 0:
            msg = f"a member has {size} bytes"
            raise ValueError(msg)
        start = offset + _MEMBER
        if data[start : start + len(MAGIC)] == MAGIC:
            yield start, size
        offset = start + size + size % 2


def _image(data: mmap.mmap, start: int, size: int) -> Image:
    return Image(lambda offset, count: data[start + offset : start + offset + count], size)


def _collect(image: Image, defined: set[bytes], needed: set[bytes]) -> None:
    tables = {section.kind: section for section in image.sections}
    table = tables.get(SHT_DYNSYM) or tables.get(SHT_SYMTAB)
    if table is None:
        return
    for name, is_defined in _names(image, table):
        (defined if is_defined else needed).add(name)


def _names(image: Image, table: Section) -> Iterator[tuple[bytes, bool]]:
    strings = image.sections[table.link]
    names = image.read(strings.offset, strings.size)
    form = struct.Struct(image.order + ("IBxH16x" if image.is_64 else "I8xBxH"))
    rows = image.read(table.offset, table.size - table.size % form.size)
    for start, info, index in form.iter_unpack(rows):
        if info > _LAST_LOCAL and start:
            yield names[start : names.index(0, start)], bool(index)
