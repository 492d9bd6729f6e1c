"""The ELF format: headers, segments, sections, and dynamic data.

Only this module knows the format. It reads bytes by offset, from a mapped file or from
the kept parts of a stream. A file may be hostile: its counts and sizes are bounded, and
contradictions raise `ValueError`.
"""

import struct
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from torchyard.package.contents import VersionNeed

MAGIC = b"\x7fELF"
DAMAGED = (struct.error, LookupError, OverflowError, ValueError)
"""Exceptions from reading damaged files."""

SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 2, 8, 11
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_GNU_STACK = 1, 2, 4, 0x6474E551
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ = 1, 4, 5, 6, 10
_DT_SONAME, _DT_RPATH, _DT_TEXTREL, _DT_RUNPATH, _DT_FLAGS = 14, 15, 22, 29, 30
_DT_GNU_HASH, _DT_VERSYM, _DT_VERDEF, _DT_VERDEFNUM = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
_DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
_DF_TEXTREL, _PF_X, _VER_FLG_BASE = 4, 1, 1
_NT_GNU_BUILD_ID = 3
_SHN_XINDEX = 0xFFFF
_EXECUTABLE_BY_DEFAULT = frozenset(("i686", "x86_64"))
_MACHINES = {3: "i686", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64"}
_MACHINES |= {183: "aarch64", 190: "cuda", 224: "amdgpu", 243: "riscv64", 258: "loongarch64"}

_MOST_LINKS = 1 << 16
_LINK = 4
"""The size of the shortest link in a chain."""
_LONGEST_TABLE = 64 << 20
_LONGEST_ROWS = 8 << 20
_LONGEST_DYNAMIC = 1 << 20
_LONGEST_NOTES = 1 << 20
_LONGEST_TEXTS = 16 << 20

Read = Callable[[int, int], bytes]
"""A function that reads bytes at an offset; only called for ranges within the file."""


class Segment(NamedTuple):
    """A part of a file with a program header."""

    kind: int
    flags: int
    offset: int
    address: int
    size: int


class Section(NamedTuple):
    """A part of a file with a section header."""

    name: str
    kind: int
    offset: int
    size: int
    link: int


class Loaded(NamedTuple):
    """The dynamic data for the loader. Lists of directories are unchanged, with colons."""

    dynamic: bool
    soname: str
    needed: tuple[str, ...]
    rpath: str
    runpath: str
    needs: tuple[VersionNeed, ...]
    defines: tuple[str, ...]
    executable_stack: bool
    text_relocations: bool
    gnu_hash: bool


class Image:
    """An ELF file, with its class and byte order."""

    def __init__(self, read: Read, size: int) -> None:
        self._read = read
        self.size = size
        head = self.read(0, min(size, 64))
        self.is_64 = head[4] == 2  # noqa: PLR2004 - ELFCLASS64
        self.order = ">" if head[5] == 2 else "<"  # noqa: PLR2004 - ELFDATA2MSB
        word = self.word = "Q" if self.is_64 else "I"
        header = struct.unpack_from(f"{self.order}HHI{word}{word}{word}IHHHHHH", head, 16)
        self.machine = _MACHINES.get(header[1], f"machine {header[1]}")
        self.program_headers, self.section_headers = header[4], header[5]
        self.program_shape, self.section_shape = header[8:10], header[10:12]
        self._names_index: int = header[12]
        self._text_size = 0

    def read(self, offset: int, size: int) -> bytes:
        if offset < 0 or offset + size > self.size:
            msg = f"{size} bytes at {offset:#x} are beyond its end"
            raise ValueError(msg)
        return self._read(offset, size)

    def unpack(self, shape: str, offset: int) -> tuple[int, ...]:
        shape = self.order + shape
        return struct.unpack(shape, self.read(offset, struct.calcsize(shape)))

    def rows(self, shape: str, offset: int, count: int, step: int) -> list[tuple[int, ...]]:
        """Read a table of rows, which may be longer than the known fields."""
        form = struct.Struct(self.order + shape)
        if step < form.size:
            msg = f"rows of a table at {offset:#x} have only {step} bytes"
            raise ValueError(msg)
        data = self.read(offset, _bounded(count * step, _LONGEST_ROWS))
        return [form.unpack_from(data, index * step) for index in range(count)]

    @cached_property
    def segments(self) -> list[Segment]:
        step, count = self.program_shape
        if not count:
            return []
        if self.is_64:
            rows = self.rows("IIQQQQ", self.program_headers, count, step)
            return [Segment(r[0], r[1], r[2], r[3], r[5]) for r in rows]
        rows = self.rows("IIIIIII", self.program_headers, count, step)
        return [Segment(r[0], r[6], r[1], r[2], r[4]) for r in rows]

    @cached_property
    def sections(self) -> list[Section]:
        step, count = self.section_shape
        if not self.section_headers:
            return []
        shape = f"II{self.word * 4}II"
        first = self.unpack(shape, self.section_headers)
        count = count or first[5]  # the count exceeds the header's field
        index = first[6] if self._names_index == _SHN_XINDEX else self._names_index
        rows = self.rows(shape, self.section_headers, count, step)
        if not index:  # the sections have no names
            return [Section("", r[1], r[4], r[5], r[6]) for r in rows]
        names = self.read(rows[index][4], _bounded(rows[index][5]))
        return [Section(self._text(names, r[0]), r[1], r[4], r[5], r[6]) for r in rows]

    @cached_property
    def tags(self) -> dict[int, list[int]]:
        """Return the dynamic section: the values of each tag, in order."""
        found: dict[int, list[int]] = {}
        shape = self.order + self.word * 2
        segments = [segment for segment in self.segments if segment.kind == PT_DYNAMIC]
        if len(segments) > 1:
            msg = "it has more than one dynamic section"
            raise ValueError(msg)
        for segment in segments:
            size = _bounded(segment.size, _LONGEST_DYNAMIC)
            part = self.read(segment.offset, size - size % struct.calcsize(shape))
            for tag, value in struct.iter_unpack(shape, part):
                if tag == 0:
                    break
                found.setdefault(tag, []).append(value)
        return found

    def _value(self, tag: int) -> int:
        """Return the value of a tag that another tag requires."""
        if tag not in self.tags:
            msg = f"its dynamic section lacks the tag {tag:#x}"
            raise ValueError(msg)
        return self.tags[tag][0]

    @cached_property
    def names(self) -> bytes:
        """Return the string table of the dynamic section."""
        if _DT_STRTAB not in self.tags:
            return b""
        start = self.offset_of(self.tags[_DT_STRTAB][0])
        return self.read(start, _bounded(self._value(_DT_STRSZ)))

    def name(self, start: int) -> str:
        """Return a string of the dynamic string table."""
        return self._text(self.names, start)

    def _text(self, names: bytes, start: int) -> str:
        """Return a string; limit the total, as few bytes can make many long strings."""
        found = text_at(names, start)
        self._text_size += len(found)
        if self._text_size > _LONGEST_TEXTS:
            msg = "its strings are too long"
            raise ValueError(msg)
        return found

    def offset_of(self, address: int) -> int:
        """Return the file offset of an address."""
        for segment in self.segments:
            within = address - segment.address
            if segment.kind == PT_LOAD and 0 <= within < segment.size:
                return segment.offset + within
        msg = f"no segment holds the address {address:#x}"
        raise ValueError(msg)

    def loaded(self) -> Loaded:
        """Read the loader's view."""
        tags = self.tags

        def texts(tag: int) -> tuple[str, ...]:
            return tuple(self.name(value) for value in tags.get(tag, ()))

        flags = tags.get(_DT_FLAGS, [0])[0]
        return Loaded(
            dynamic=bool(tags),
            soname="".join(texts(_DT_SONAME)[:1]),
            needed=texts(_DT_NEEDED),
            rpath=":".join(texts(_DT_RPATH)),
            runpath=":".join(texts(_DT_RUNPATH)),
            needs=tuple(dict.fromkeys(need for _, need in self.version_needs())),
            defines=self._version_definitions(),
            executable_stack=self._executable_stack(),
            text_relocations=_DT_TEXTREL in tags or bool(flags & _DF_TEXTREL),
            gnu_hash=not tags or _DT_GNU_HASH in tags,
        )

    def _executable_stack(self) -> bool:
        """Return whether the stack must be executable; the default depends on the machine."""
        for segment in self.segments:
            if segment.kind == PT_GNU_STACK:
                return bool(segment.flags & _PF_X)
        return bool(self.tags) and self.machine in _EXECUTABLE_BY_DEFAULT

    def version_needs(self) -> list[tuple[int, VersionNeed]]:
        """Return the needed versions, with their indexes in `symbol_versions`.

        They are chains with a link for each library, and for each version.
        """
        found: list[tuple[int, VersionNeed]] = []
        links = 0
        if _DT_VERNEED in self.tags:
            library = self.offset_of(self.tags[_DT_VERNEED][0])
            for _ in range(self._links(self._value(_DT_VERNEEDNUM))):
                _, count, file, first, following = self.unpack("HHIII", library)
                links = self._links(links + 1 + count)
                name = self.name(file)
                version = library + first
                for _ in range(count):
                    *_, index, text, more = self.unpack("IHHII", version)
                    found.append((index, VersionNeed(name, self.name(text))))
                    version += more
                library += following
        return found

    def _version_definitions(self) -> tuple[str, ...]:
        """Return the chain of defined versions, without the file's own name."""
        found: dict[str, None] = {}
        if _DT_VERDEF in self.tags:
            offset = self.offset_of(self.tags[_DT_VERDEF][0])
            for _ in range(self._links(self._value(_DT_VERDEFNUM))):
                _, flags, _, _, _, first, following = self.unpack("HHHHIII", offset)
                if not flags & _VER_FLG_BASE:
                    found[self.name(self.unpack("II", offset + first)[0])] = None
                offset += following
        return tuple(found)

    def _links(self, count: int) -> int:
        """Check the number of links in a chain, each of which takes bytes unless it is circular."""
        if count > min(_MOST_LINKS, self.size // _LINK):
            msg = f"a chain of {count} links is too long"
            raise ValueError(msg)
        return count

    def build_id(self) -> str:
        left = _LONGEST_NOTES
        for segment in self.segments:
            if segment.kind != PT_NOTE or segment.size > left:
                continue
            left -= segment.size
            data = self.read(segment.offset, segment.size)
            offset = 0
            while offset + 12 <= len(data):
                name_size, size, kind = struct.unpack_from(f"{self.order}III", data, offset)
                name = offset + 12
                content = name + _rounded(name_size)
                if kind == _NT_GNU_BUILD_ID and data[name : name + 4] == b"GNU\0":
                    return data[content : content + size].hex()
                offset = content + _rounded(size)
        return ""

    def symbol_table(self) -> tuple[int, int]:
        """Return the offset and number of the dynamic symbols."""
        if _DT_SYMTAB not in self.tags:
            return 0, 0
        start = self.offset_of(self.tags[_DT_SYMTAB][0])
        for section in self.sections:
            if section.kind == SHT_DYNSYM and section.offset == start:
                return start, section.size // (24 if self.is_64 else 16)
        return start, self._hashed_symbols()

    def symbol_versions(self, first: int, count: int) -> tuple[int, ...]:
        """Return the versions of dynamic symbols; empty if the file has none."""
        if _DT_VERSYM not in self.tags:
            return ()
        return self.unpack(f"{count}H", self.offset_of(self.tags[_DT_VERSYM][0]) + first * 2)

    def _hashed_symbols(self) -> int:
        """Return the number of symbols, from the loader's hash tables."""
        if _DT_HASH in self.tags:
            return self.unpack("II", self.offset_of(self.tags[_DT_HASH][0]))[1]
        if _DT_GNU_HASH not in self.tags:
            return 0
        start = self.offset_of(self.tags[_DT_GNU_HASH][0])
        buckets, first, filters, _ = self.unpack("IIII", start)
        offset = start + 16 + filters * (8 if self.is_64 else 4)
        size = _bounded(buckets * 4)
        table = struct.iter_unpack(f"{self.order}I", self.read(offset, size))
        last: int = max(table, default=(0,))[0]
        if last < first:
            return first
        chain = offset + size + (last - first) * 4
        length = 0
        while not self.unpack("I", chain + length * 4)[0] & 1:
            length = self._links(length + 1)
        return last + length + 1


def _bounded(size: int, most: int = _LONGEST_TABLE) -> int:
    if size > most:
        msg = f"a table of {size} bytes is too long"
        raise ValueError(msg)
    return size


def text_at(names: bytes, start: int) -> str:
    """Read a name up to its zero byte."""
    end = names.find(b"\0", start)
    if end < 0:
        msg = f"no name ends after {start:#x}"
        raise ValueError(msg)
    return names[start:end].decode(errors="backslashreplace")


def _rounded(size: int) -> int:
    return (size + 3) & ~3
