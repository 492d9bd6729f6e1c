"""The contents of a package, from a single pass over it: plain values for all formats."""

import re
from enum import StrEnum
from typing import Literal, NamedTuple

import msgspec

from torchyard.model.values import Reported, Value

_LIBRARY = re.compile(r"\.(so(\.\d+)*|dylib|dll|pyd)\Z")


def is_library(name: str) -> bool:
    """Return whether a file name is a shared library's: `libc10.so.1`."""
    return _LIBRARY.search(name) is not None


class FaultKind(StrEnum):
    """Defects of an archive itself, regardless of the meaning of its files."""

    STRUCTURE = "structure"
    """The archive is cut off, contradictory or ambiguous."""
    NAME = "name"
    """A member would overwrite another one, or be written outside of the target."""
    BOMB = "bomb"
    """It unpacks to far more than its stored size, or more than declared."""
    CONTENT = "content"
    """A member's unpacked content does not match its checksum or size."""
    BINARY = "binary"
    """A member starts like a program or a library, but can't be parsed."""


class Fault(NamedTuple):
    """A defect of a member, or without a member, of the whole archive."""

    kind: FaultKind
    member: str
    what: str


class Oddity(NamedTuple):
    """A property of a valid archive that strict readers refuse."""

    member: str
    what: str


class DeviceCode(Reported):
    """Device code for one GPU architecture: the number of programs, and their size."""

    kind: str
    """`cubin`, `ptx`, `hsaco` …: one of the `device_kinds` of a compute platform."""
    arch: str
    """`sm_90a` for machine code, `compute_90` for PTX, `gfx90a` for AMD's."""
    programs: int
    size: int = msgspec.field(name="bytes")


class VersionNeed(NamedTuple):
    """A symbol version that a library must provide: `GLIBC_2.34` of `libc.so.6`."""

    library: str
    version: str


class Binary(Value, kw_only=True):
    """A program or library of any system, from its loader's view."""

    format: Literal["elf", "mach-o", "pe"]
    machine: str
    """x86_64, aarch64 …; several, with commas, for a Mach-O file with more than one."""
    dynamic: bool = True
    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: str = ""
    runpath: str = ""
    """Both as written, with their colons; Mach-O has only rpaths."""
    build_id: str = ""
    needs: tuple[VersionNeed, ...] = ()
    defines: tuple[str, ...] = ()
    exports: bytes = b""
    imports: bytes = b""
    weak: bytes = b""
    versioned: bytes = b""
    """Dynamic symbols: zero-terminated names in one block, so that one search covers all.

    Weak imports may be undefined. Versioned ones (`memcpy@GLIBC_2.14`) were
    in a library with that version when the file was linked. Only ELF files have either here.
    """
    sections: dict[str, int] = {}
    device: tuple[DeviceCode, ...] = ()
    executable_stack: bool = False
    text_relocations: bool = False
    gnu_hash: bool = True
    minimum_system: str = ""
    """The oldest macOS that a Mach-O file supports."""


class PackageFile(Value, kw_only=True):
    """A member of a package, with its sizes in bytes, unpacked and stored.

    Members of a conda package have no stored size, as they are compressed together. A link
    has neither content nor digest.
    """

    name: str
    size: int
    stored: int = 0
    digest: str = ""
    """The SHA-256 in hexadecimal digits."""
    executable: bool = False
    link: str = ""
    binary: Binary | None = None


class Contents(Value, kw_only=True):
    """The contents of a package. Those of conda packages include the files of `info/`."""

    file_name: str
    format: str
    """Its name in `torchyard.package.formats`."""
    size: int
    files: dict[str, PackageFile]
    texts: dict[str, bytes] = {}
    """Small files about the package or about compiling against it; see `is_kept`."""
    faults: tuple[Fault, ...] = ()
    oddities: tuple[Oddity, ...] = ()


def is_torn(contents: Contents) -> bool:
    """Return whether the archive is damaged, so that files may be missing."""
    return any(fault.kind is FaultKind.STRUCTURE for fault in contents.faults)
