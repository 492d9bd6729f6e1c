"""The names of dynamic symbols."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from torchyard.package.contents import Binary
from torchyard.package.elf.image import SHT_DYNSYM, Image, Section

_LAST_LOCAL = 15
"""The largest `info` of symbols that other files can't use."""
_WEAK = 2
_INDEX = 0x7FFF
"""The index bits of a symbol's version; 0 and 1 mean no version."""
_VISIBLE = (0, 3)  # STV_DEFAULT, STV_PROTECTED
_LONGEST_NAME = 64 << 10
_BATCH = 512
"""The number of symbols after which the total length of names is checked."""
_SHT_GNU_HASH = 0x6FFFFFF6
_LARGEST_TABLE = 64 << 20


class SymbolNames(NamedTuple):
    """Zero-terminated names, in one block for each kind; the last two are subsets of `imports`.

    `weak` ones may be undefined; `versioned` ones were in a library when the file was linked.
    """

    exports: bytes
    imports: bytes
    weak: bytes
    versioned: bytes


def symbol_names(image: Image, most: int) -> SymbolNames:
    """Return the names of a file's dynamic symbols, from the loader's view."""
    start, count = image.symbol_table()
    form = struct.Struct(image.order + ("IBBH16x" if image.is_64 else "I8xBBH"))
    size = form.size
    if count * size > most:
        msg = f"{count} symbols are too many"
        raise ValueError(msg)
    names = image.names
    find = names.index
    found: tuple[list[bytes], ...] = ([], [], [], [])
    total = 0
    for first in range(0, count, _BATCH):
        batch = min(_BATCH, count - first)
        part = image.read(start + first * size, batch * size)
        rows = list(form.iter_unpack(part))
        exported = [r[0] for r in rows if r[3] and r[1] > _LAST_LOCAL and r[2] & 3 in _VISIBLE]
        used = [(n, r) for n, r in enumerate(rows, first) if not r[3] and r[1] > _LAST_LOCAL]
        versions = image.symbol_versions(first, batch) if used else ()
        imported = [row[0] for _, row in used]
        weak = [row[0] for _, row in used if row[1] >> 4 == _WEAK]
        versioned = [row[0] for n, row in used if versions and versions[n - first] & _INDEX > 1]
        for all_of_them, starts in zip(found, (exported, imported, weak, versioned), strict=True):
            more = [names[at : find(0, at, at + _LONGEST_NAME) + 1] for at in starts]
            all_of_them.append(b"".join(more))
            total += len(all_of_them[-1])
        if total > most:
            msg = "the names of its symbols are too long"
            raise ValueError(msg)
    return SymbolNames(*map(b"".join, found))


def exported_names(image: Image) -> list[bytes]:
    """Return the exported names from the file's sections alone, and verify them.

    Sections, symbols and names are at the ends of a file, the dynamic section is in the middle. The
    loader's hash table has a hash of each name, which proves that these names were linked.
    """
    if not image.is_64:
        msg = "it is not a 64-bit file"
        raise ValueError(msg)
    table = _section(image, SHT_DYNSYM)
    names = _content(image, image.sections[table.link])
    form = struct.Struct(f"{image.order}IBBH16x")
    data = _content(image, table)
    rows = list(form.iter_unpack(data[: len(data) // form.size * form.size]))
    first, chain = _hash_chain(image, len(rows))
    found = []
    for (start, info, other, index), known in zip(rows[first:], chain, strict=True):
        name = names[start : names.index(0, start)]
        if (_gnu_hash(name) ^ known) >> 1:
            msg = f"its hash table has another name than {name!r}"
            raise ValueError(msg)
        if info > _LAST_LOCAL and index and other & 3 in _VISIBLE:
            found.append(name)
    return found


def split_names(names: bytes) -> Iterator[bytes]:
    """Yield the names of a block."""
    yield from names.split(b"\0")[:-1]


def free_names(binary: Binary) -> set[bytes]:
    """Return the names that a file needs from any library."""
    bound = (*split_names(binary.weak), *split_names(binary.versioned))
    return set(split_names(binary.imports)).difference(bound)


def _section(image: Image, kind: int) -> Section:
    found = [section for section in image.sections if section.kind == kind]
    if len(found) != 1:
        msg = f"it has {len(found)} sections of the kind {kind:#x}"
        raise ValueError(msg)
    return found[0]


def _content(image: Image, section: Section) -> bytes:
    if section.size > _LARGEST_TABLE:
        msg = f"its section {section.name} is too long"
        raise ValueError(msg)
    return image.read(section.offset, section.size)


def _hash_chain(image: Image, count: int) -> tuple[int, list[int]]:
    """Return the first symbol in the GNU hash table, and the hashes from it on."""
    data = _content(image, _section(image, _SHT_GNU_HASH))
    buckets, first, filters, _ = struct.unpack_from(f"{image.order}IIII", data)
    start = 16 + filters * 8 + buckets * 4
    if first > count:
        return count, []
    return first, list(struct.unpack_from(f"{image.order}{count - first}I", data, start))


def _gnu_hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = value * 33 + byte & 0xFFFFFFFF
    return value
