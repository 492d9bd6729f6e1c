"""Reading ELF files: what the loader would see, and which symbols and sections there are.

Files are mapped, not read: only the pages that a question leads to are ever touched. What the
loader needs is found by the program headers alone, as the loader does, so files without sections
can be read, too.
"""

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError

_MAGIC = b"\x7fELF"

_PT_LOAD, _PT_DYNAMIC, _PT_NOTE = 1, 2, 4
_DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 14, 15, 29
_DT_VERNEED, _DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
_NT_GNU_BUILD_ID = 3
_SHT_SYMTAB, _SHT_NOBITS, _SHT_DYNSYM = 2, 8, 11
_SHN_UNDEF, _SHN_XINDEX = 0, 0xFFFF
_SPECIAL_SECTIONS = {0xFFF1: "*ABS*", 0xFFF2: "*COM*"}
_NO_NAME = frozenset((3, 4))
"""Kinds of symbols that name a section or a file of source, nothing that a program could use."""

_KINDS = ("notype", "object", "func", "section", "file", "common", "tls", "", "", "", "ifunc")
_MACHINES = {3: "i686", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64"}
_MACHINES |= {183: "aarch64", 243: "riscv64", 258: "loongarch64"}


class Elf(NamedTuple):
    """What the loader reads of a file. Lists of directories are as written, with their colons."""

    is_64: bool
    machine: str
    dynamic: bool
    soname: str
    needed: tuple[str, ...]
    rpath: str
    runpath: str
    build_id: str
    versions: tuple[str, ...]
    """Versions of symbols that others must have: `GLIBC_2.34`."""


class Symbol(NamedTuple):
    """A name that a file defines, of which kind, and in which section."""

    name: str
    kind: str
    section: str


class Segment(NamedTuple):
    """A part of a file that is described by a program header."""

    kind: int
    offset: int
    address: int
    size: int


class Section(NamedTuple):
    """A part of a file that is described by a section header."""

    name: str
    kind: int
    offset: int
    size: int
    link: int


class _Image:
    """The bytes of an ELF file, and how its class and byte order shape them."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.is_64 = data[4] == 2  # noqa: PLR2004 - ELFCLASS64
        self.order = ">" if data[5] == 2 else "<"  # noqa: PLR2004 - ELFDATA2MSB
        word = "Q" if self.is_64 else "I"
        self.word = word
        header = struct.unpack_from(f"{self.order}HHI{word}{word}{word}IHHHHHH", data, 16)
        self.machine: int = header[1]
        self.program_headers, self.section_headers = header[4], header[5]
        self.program_shape, self.section_shape = header[8:10], header[10:12]
        self.names_index: int = header[12]

    def unpack(self, shape: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(self.order + shape, self.data, offset)

    def text(self, offset: int) -> str:
        """Read a name up to the zero byte that ends it."""
        end = self.data.find(b"\0", offset)
        if end < 0:
            msg = f"no name ends after {offset:#x}"
            raise ValueError(msg)
        return self.data[offset:end].decode(errors="backslashreplace")

    def segments(self) -> Iterator[Segment]:
        size, count = self.program_shape
        for index in range(count):
            place = self.program_headers + index * size
            if self.is_64:
                kind, _, offset, address, _, length = self.unpack("IIQQQQ", place)
            else:
                kind, offset, address, _, length = self.unpack("IIIII", place)
            yield Segment(kind, offset, address, length)

    def sections(self) -> list[Section]:
        size, count = self.section_shape
        if not self.section_headers:
            return []
        shape = f"II{self.word * 4}II{self.word * 2}"
        first = self.unpack(shape, self.section_headers)
        count = count or first[5]  # too many for the header's field
        names = first[6] if self.names_index == _SHN_XINDEX else self.names_index
        rows = [self.unpack(shape, self.section_headers + i * size) for i in range(count)]
        base = rows[names][4]
        return [Section(self.text(base + r[0]), r[1], r[4], r[5], r[6]) for r in rows]


@contextmanager
def _opened(path: Path) -> Iterator[_Image | None]:
    """Map a file; None if it is no ELF file at all."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            yield None
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                yield _Image(data)
            except (struct.error, IndexError, OverflowError, ValueError) as error:
                msg = f"`{path}` begins like an ELF file but is damaged: {error}"
                raise BuildError(msg, hint="build it again; it may have been cut off") from error


def read_elf(path: Path) -> Elf | None:
    """Read what the loader would; None if the file is no ELF file."""
    with _opened(path) as image:
        if image is None:
            return None
        segments = list(image.segments())
        tags = _dynamic(image, segments)
        names = _offset_of(segments, tags[_DT_STRTAB][0]) if _DT_STRTAB in tags else 0

        def texts(tag: int) -> tuple[str, ...]:
            return tuple(image.text(names + value) for value in tags.get(tag, ()))

        return Elf(
            is_64=image.is_64,
            machine=_MACHINES.get(image.machine, f"machine {image.machine}"),
            dynamic=bool(tags),
            soname="".join(texts(_DT_SONAME)[:1]),
            needed=texts(_DT_NEEDED),
            rpath=":".join(texts(_DT_RPATH)),
            runpath=":".join(texts(_DT_RUNPATH)),
            build_id=_build_id(image, segments),
            versions=_versions(image, segments, tags, names),
        )


def _dynamic(image: _Image, segments: list[Segment]) -> dict[int, list[int]]:
    """The dynamic section: each tag with its values, in their order."""
    tags: dict[int, list[int]] = {}
    for segment in segments:
        if segment.kind != _PT_DYNAMIC:
            continue
        part = image.data[segment.offset : segment.offset + segment.size]
        for tag, value in struct.iter_unpack(image.order + image.word * 2, part):
            if tag == 0:
                break
            tags.setdefault(tag, []).append(value)
    return tags


def _versions(
    image: _Image, segments: list[Segment], tags: dict[int, list[int]], names: int
) -> tuple[str, ...]:
    """Follow the two chains of needed versions: one link for each library, one for each version."""
    found: dict[str, None] = {}
    if _DT_VERNEED in tags:
        library = _offset_of(segments, tags[_DT_VERNEED][0])
        for _ in range(tags[_DT_VERNEEDNUM][0]):
            _, count, _, first, following = image.unpack("HHIII", library)
            version = library + first
            for _ in range(count):
                *_, name, more = image.unpack("IHHII", version)
                found[image.text(names + name)] = None
                version += more
            library += following
    return tuple(found)


def _offset_of(segments: list[Segment], address: int) -> int:
    """Where in the file an address comes from."""
    for segment in segments:
        within = address - segment.address
        if segment.kind == _PT_LOAD and 0 <= within < segment.size:
            return segment.offset + within
    msg = f"no segment holds the address {address:#x}"
    raise ValueError(msg)


def _build_id(image: _Image, segments: list[Segment]) -> str:
    for segment in segments:
        if segment.kind != _PT_NOTE:
            continue
        place, end = segment.offset, segment.offset + segment.size
        while place + 12 <= end:
            name_size, size, kind = image.unpack("III", place)
            name = place + 12
            content = name + _rounded(name_size)
            if kind == _NT_GNU_BUILD_ID and image.data[name : name + 4] == b"GNU\0":
                return image.data[content : content + size].hex()
            place = content + _rounded(size)
    return ""


def _rounded(size: int) -> int:
    return (size + 3) & ~3


def symbols(path: Path) -> set[Symbol]:
    """Every symbol that a file defines, for the linker or only for debuggers."""
    found: set[Symbol] = set()
    with _opened(path) as image:
        if image is None:
            return found
        sections = image.sections()
        for section in sections:
            if section.kind in (_SHT_SYMTAB, _SHT_DYNSYM):
                found.update(_symbols_in(image, section, sections))
    return found


def _symbols_in(image: _Image, table: Section, sections: list[Section]) -> Iterator[Symbol]:
    names = sections[table.link].offset
    part = image.data[table.offset : table.offset + table.size]
    for row in struct.iter_unpack(image.order + ("IBBHQQ" if image.is_64 else "IIIBBH"), part):
        name, info, index = (row[0], row[1], row[3]) if image.is_64 else (row[0], row[3], row[5])
        kind = info & 15
        if index == _SHN_UNDEF or kind in _NO_NAME:
            continue
        place = sections[index].name if index < len(sections) else _SPECIAL_SECTIONS.get(index, "")
        known = _KINDS[kind] if kind < len(_KINDS) else f"kind {kind}"
        yield Symbol(image.text(names + name), known, place)


def symbol_difference(a: Path, b: Path) -> tuple[list[str], list[str]]:
    """The names that only the first file defines, and those that only the second one does.

    A symbol that is in both, but of another kind or in another section, is in both lists.
    """
    first, second = symbols(a), symbols(b)
    return sorted({s.name for s in first - second}), sorted({s.name for s in second - first})


def section_names(path: Path) -> tuple[str, ...]:
    """The names of all sections, in their order."""
    with _opened(path) as image:
        return tuple(section.name for section in image.sections()) if image else ()


def section_difference(a: Path, b: Path) -> list[str]:
    """The names of the sections that are not the same in both files."""
    first, second = _section_digests(a), _section_digests(b)
    names = first.keys() | second.keys()
    return sorted(name for name in names if first.get(name) != second.get(name))


def _section_digests(path: Path) -> dict[str, str]:
    with _opened(path) as image:
        if image is None:
            return {}
        found: dict[str, str] = {}
        for section in image.sections():
            stored = 0 if section.kind == _SHT_NOBITS else section.size
            part = image.data[section.offset : section.offset + stored]
            digest = f"{section.size} {sha256(part).hexdigest()}"
            found[section.name] = f"{found.get(section.name, '')} {digest}"
        return found
