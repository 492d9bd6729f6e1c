"""Generated ELF files, each part of which a test can choose."""

import struct
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_GNU_STACK = 1, 2, 4, 0x6474E551
DT = {"needed": 1, "strtab": 5, "symtab": 6, "strsz": 10, "soname": 14, "rpath": 15}
DT |= {"textrel": 22, "runpath": 29, "flags": 30, "gnu_hash": 0x6FFFFEF5}
DT |= {"verdef": 0x6FFFFFFC, "verdefnum": 0x6FFFFFFD}
DT |= {"verneed": 0x6FFFFFFE, "verneednum": 0x6FFFFFFF}


class Made(NamedTuple):
    """The parts of an ELF file for x86_64; addresses equal file offsets."""

    soname: str = ""
    needed: Sequence[str] = ()
    rpath: str = ""
    runpath: str = ""
    symbols: Sequence[tuple[str, int, int, int]] = ()
    """Names, with binding, visibility, and section: 0 if others define them."""
    needs: Mapping[str, Sequence[str]] = {}
    defines: Sequence[str] = ()
    build_id: bytes = b""
    stack: int | None = 6
    tags: Sequence[tuple[int, int]] = ()
    gnu_hash: bool = True
    sections: bool = True
    dynamic: bool = True
    filler: bytes = b""
    """Between the symbols and all the rest."""
    names_last: bool = False
    """As patchelf does: the names go to the end."""


class _Names:
    def __init__(self) -> None:
        self.data = bytearray(1)

    def add(self, name: str) -> int:
        place = len(self.data)
        self.data += name.encode() + b"\0"
        return place


def make_elf(made: Made) -> bytes:
    """Lay out a file: headers, symbols, filler, the rest."""
    names = _Names()
    data = bytearray(64 + 56 * 4)
    places: dict[str, tuple[int, int]] = {}

    def put(part: str, content: bytes) -> None:
        data.extend(bytes(-len(data) % 8))
        places[part] = (len(data), len(content))
        data.extend(content)

    rows = [(names.add(name), bind << 4, other, index) for name, bind, other, index in made.symbols]
    table = bytes(24) + b"".join(struct.pack("<IBBHQQ", *row, 0, 0) for row in rows)
    put(".dynsym", table)
    put(".gnu.hash", _hash([name.encode() for name, *_ in made.symbols]))
    put(".gnu.version_r", _needs(made.needs, names))
    put(".gnu.version_d", _defines(made.defines, names))
    note = struct.pack("<III4s", 4, len(made.build_id), 3, b"GNU\0") + made.build_id
    put(".note", note if made.build_id else b"")
    tags = [("needed", names.add(name)) for name in made.needed]
    texts = {"soname": made.soname, "rpath": made.rpath, "runpath": made.runpath}
    tags += [(tag, names.add(text)) for tag, text in texts.items() if text]
    if not made.names_last:
        put(".dynstr", bytes(names.data))
    data.extend(made.filler)
    if made.names_last:
        put(".dynstr", bytes(names.data))
    tags += [("strtab", places[".dynstr"][0]), ("strsz", len(names.data))]
    tags += [("symtab", places[".dynsym"][0])]
    if made.gnu_hash:
        tags.append(("gnu_hash", places[".gnu.hash"][0]))
    if made.needs:
        tags += [("verneed", places[".gnu.version_r"][0]), ("verneednum", len(made.needs))]
    if made.defines:
        tags += [("verdef", places[".gnu.version_d"][0]), ("verdefnum", len(made.defines))]
    numbers = [(DT[tag], value) for tag, value in tags] + [*made.tags, (0, 0)]
    put(".dynamic", b"".join(struct.pack("<QQ", *row) for row in numbers))
    section_headers = _put_sections(data, places) if made.sections else (0, 0, 0)
    segments = [(PT_LOAD, 5, 0, len(data)), (PT_NOTE, 4, *places[".note"])]
    if made.dynamic:
        segments.append((PT_DYNAMIC, 6, *places[".dynamic"]))
    if made.stack is not None:
        segments.append((PT_GNU_STACK, made.stack, 0, 0))
    for number, (kind, flags, place, size) in enumerate(segments):
        row = struct.pack("<IIQQQQQQ", kind, flags, place, place, place, size, size, 8)
        data[64 + 56 * number : 64 + 56 * (number + 1)] = row
    start, count, index = section_headers
    shape = (3, 62, 1, 0, 64, start, 0, 64, 56, len(segments), 64, count, index)
    data[:64] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", *shape)
    return bytes(data)


def _hash(names: Sequence[bytes]) -> bytes:
    """A table with one bucket, which holds all symbols."""
    chain = [_gnu_hash(name) & ~1 for name in names]
    chain[-1:] = [value | 1 for value in chain[-1:]]
    return struct.pack(f"<IIIIQI{len(chain)}I", 1, 1, 1, 0, 0, 1 if chain else 0, *chain)


def _gnu_hash(name: bytes) -> int:
    return reduce(lambda value, byte: (value * 33 + byte) % (1 << 32), name, 5381)


def _needs(needs: Mapping[str, Sequence[str]], names: _Names) -> bytes:
    data = b""
    for number, (library, versions) in enumerate(needs.items(), 1):
        following = 0 if number == len(needs) else 16 + 16 * len(versions)
        data += struct.pack("<HHIII", 1, len(versions), names.add(library), 16, following)
        for index, version in enumerate(versions, 1):
            more = 0 if index == len(versions) else 16
            data += struct.pack("<IHHII", 0, 0, 2, names.add(version), more)
    return data


def _defines(defines: Sequence[str], names: _Names) -> bytes:
    """The first one is the file's own name."""
    data = b""
    for number, version in enumerate(defines, 1):
        following = 0 if number == len(defines) else 28
        data += struct.pack("<HHHHIII", 1, number == 1, number, 1, 0, 20, following)
        data += struct.pack("<II", names.add(version), 0)
    return data


def _put_sections(data: bytearray, places: Mapping[str, tuple[int, int]]) -> tuple[int, int, int]:
    kinds = {".dynsym": 11, ".dynstr": 3, ".gnu.hash": 0x6FFFFFF6}
    links = {11: [*places].index(".dynstr") + 1}
    names = _Names()
    rows = [(0, 0, 0, 0)]
    rows += [(names.add(name), kinds.get(name, 1), *place) for name, place in places.items()]
    own = names.add(".shstrtab")
    rows.append((own, 3, len(data), len(names.data)))
    data.extend(names.data)
    start = len(data)
    for name, kind, place, size in rows:
        data.extend(
            struct.pack(
                "<IIQQQQIIQQ", name, kind, 0, place, place, size, links.get(kind, 0), 0, 1, 0
            )
        )
    return start, len(rows), len(rows) - 1
