"""What is in a package, as one pass over it finds it: plain values, whoever made the package."""

import re
from enum import StrEnum
from typing import Literal, NamedTuple

from torchyard.model.values import Value

_LIBRARY = re.compile(r"\.(so(\.\d+)*|dylib|dll|pyd)\Z")


def is_library(name: str) -> bool:
    """Whether a file is one that others load, by the end of its name: `libc10.so.1`."""
    return _LIBRARY.search(name) is not None


class FaultKind(StrEnum):
    """What can be wrong with an archive before anybody asks what its files mean."""

    STRUCTURE = "structure"
    """The archive is cut off, contradicts itself, or could be read in two ways."""
    NAME = "name"
    """A member would be written over another one, or outside of where it is unpacked."""
    BOMB = "bomb"
    """Far more comes out than went in, or more than was said."""
    CONTENT = "content"
    """What comes out of a member is not what was put in."""
    BINARY = "binary"
    """A member begins like a program or a library, and is none."""


class Fault(NamedTuple):
    """Something wrong with the archive itself; without a member, with the whole of it."""

    kind: FaultKind
    member: str
    what: str


class DeviceCode(NamedTuple):
    """Programs for one architecture of GPUs: how many there are, and the bytes they take."""

    kind: Literal["cubin", "ptx", "hsaco"]
    arch: str
    """`sm_90a` for machine code, `compute_90` for PTX, `gfx90a` for AMD's."""
    programs: int
    size: int


class VersionNeed(NamedTuple):
    """A version of symbols that a library must have: `GLIBC_2.34` of `libc.so.6`."""

    library: str
    version: str


class Binary(Value, kw_only=True):
    """A program or library of any system, as its loader sees it."""

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
    """Dynamic symbols that others can use, and those that others must have: each name followed by
    a zero byte, so that one search goes through all of them."""
    sections: dict[str, int] = {}
    device: tuple[DeviceCode, ...] = ()
    executable_stack: bool = False
    text_relocations: bool = False
    gnu_hash: bool = True
    minimum_system: str = ""
    """The oldest macOS that a Mach-O file is for."""


class PackageFile(Value, kw_only=True):
    """A member of a package. Sizes are in bytes: as it is, and as it is stored.

    In a conda package, whose members are compressed together, there is no size as stored. A link
    has neither content nor digest.
    """

    name: str
    size: int
    stored: int = 0
    digest: str = ""
    """The SHA-256, in hexadecimal digits."""
    executable: bool = False
    link: str = ""
    binary: Binary | None = None


class Contents(Value, kw_only=True):
    """All of a package. Conda packages have the files of `info/` with the others."""

    file_name: str
    format: str
    """Its name in `torchyard.package.formats`."""
    size: int
    files: dict[str, PackageFile]
    texts: dict[str, bytes] = {}
    """The small files that speak of the package or of how to compile against it; see `is_kept`."""
    faults: tuple[Fault, ...] = ()


def is_torn(contents: Contents) -> bool:
    """Whether the archive can't be read as it should, so that files may be missing."""
    return any(fault.kind is FaultKind.STRUCTURE for fault in contents.faults)
