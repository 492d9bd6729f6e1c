"""Write reproducible zip archives: the same bytes at any time, on any machine.

Members are compressed by libdeflate. Its output depends only on its version and the level: code
for different processors (checksums, moving its window) gives the same result. zlib can't promise
that, as each system has its own build or fork.

libdeflate compresses a whole member at once. The input is mapped, so that its pages can be dropped,
but the output is in memory, briefly twice: about 1 GB for a library of 1.5 GB. Members are
compressed in threads (libdeflate releases Python's lock) and written in order; at most `_AHEAD`
bytes of input, and one member, are in progress at any time.
"""

import mmap
import os
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

import deflate

from torchyard.errors import BuildError, HostError
from torchyard.host.locks import locked
from torchyard.host.machine import processors
from torchyard.package.zip.raw_copy import Raw, copy_raw

DEBUG = "-debug.zip"
"""The suffix of an archive with a package's debug information."""

_LEVEL = 6
_AHEAD = 512 << 20

_STORED, _DEFLATED = 0, 8
_PLAIN_VERSION, _ZIP64_VERSION = 20, 45
_UNIX = 3 << 8
_UTF8_NAME = 0x800
_DATE = 0x0021  # 1980-01-01, the earliest: host.snapshot.EPOCH
_TIME = 0
_REGULAR = 0o100000
_MAX_16, _MAX_32 = 0xFFFF, 0xFFFF_FFFF


class Member(NamedTuple):
    """A file to write: its name in the archive, and the source of its content."""

    name: str
    source: Path | bytes
    executable: bool = False


class Written(NamedTuple):
    """A written file, for lists of contents; the digest is a SHA-256."""

    name: str
    size: int
    digest: bytes


class _Packed(NamedTuple):
    """A member ready to write; without data, its source is stored uncompressed."""

    data: bytearray | None
    size: int
    crc: int
    digest: bytes


class _Pending(NamedTuple):
    """A member that waits to be written; raw members need no compression."""

    member: Member | Raw
    size: int
    packing: Future[_Packed] | None = None

    @property
    def is_ready(self) -> bool:
        return self.packing is None or self.packing.done()


def members_of(folder: Path, prefix: str = "") -> list[Member]:
    """Return all files below a directory, sorted. Follow links, as not all readers support them.

    Links that lead out of the directory are refused, as their targets are not build results.
    """
    found: list[Member] = []
    root = folder.resolve()
    for top, folders, files in os.walk(folder):
        for name in folders:
            if Path(top, name).is_symlink():
                msg = f"`{Path(top, name)}` is a link to a directory, which archives can't contain"
                raise BuildError(msg, hint="install the files instead")
        for name in files:
            path = Path(top, name)
            if not path.is_file():
                msg = f"`{path}` is neither a file nor a link to one"
                raise BuildError(msg, hint="install a file instead, or remove it")
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                msg = f"`{path}` is a link that leads out of `{folder}`, to `{path.resolve()}`"
                raise BuildError(msg, hint="install the file instead")
            executable = bool(path.stat().st_mode & 0o100)
            found.append(Member(prefix + path.relative_to(folder).as_posix(), path, executable))
    return sorted(found, key=lambda member: member.name)


def write_debug(debug: Path, package: Path) -> Path | None:
    """Write the debug information in a directory to an archive beside the package, if any."""
    members = members_of(debug)
    if not members:
        return None
    path = package.with_name(f"{package.stem}{DEBUG}")
    with writing(path) as archive:
        archive.add(members)
    return path


@contextmanager
def writing(out: Path, comment: bytes = b"") -> "Iterator[ZipWriter]":
    """Write an archive, which gets its final name when it is complete.

    Concurrent writers of the same name wait for each other.
    """
    beside = out.with_name(f".{out.name}.part")
    with locked(beside, wait=True):
        try:
            with beside.open("wb") as file:
                writer = ZipWriter(file, comment)
                yield writer
                writer.close()
            beside.replace(out)
        finally:
            beside.unlink(missing_ok=True)


class ZipWriter:
    """Writes members in the given order."""

    def __init__(self, file: BinaryIO, comment: bytes = b"") -> None:
        self._file = file
        self._comment = comment
        self._directory: list[bytes] = []
        self._names: set[str] = set()

    def add(self, members: Iterable[Member | Raw]) -> list[Written]:
        """Write more members; return the entries of all but copied ones."""
        pending: deque[_Pending] = deque()
        written: list[Written] = []

        def write_oldest() -> int:
            member, size, future = pending.popleft()
            if isinstance(member, Raw):
                self._directory.extend(copy_raw(member, self._file))
            elif future is not None:
                packed = future.result()
                self._write(member, packed)
                written.append(Written(member.name, packed.size, packed.digest))
            return size

        ahead = 0
        with ThreadPoolExecutor(processors()) as pool:
            for member in members:
                while pending and (ahead > _AHEAD or pending[0].is_ready):
                    ahead -= write_oldest()
                if isinstance(member, Raw):
                    self._claim(*member.names)
                    pending.append(_Pending(member, 0))
                    continue
                self._claim(member.name)
                size = _size(member.source)
                pending.append(_Pending(member, size, pool.submit(_pack, member.source)))
                ahead += size
            while pending:
                write_oldest()
        return written

    def close(self) -> None:
        """Write the directory of all members and end the archive."""
        start = self._file.tell()
        self._file.writelines(self._directory)
        size = self._file.tell() - start
        count = len(self._directory)
        if count >= _MAX_16 or start >= _MAX_32 or size >= _MAX_32:
            end = start + size
            versions = (_UNIX | _ZIP64_VERSION, _ZIP64_VERSION)
            large = (b"PK\x06\x06", 44, *versions, 0, 0, count, count, size, start)
            self._file.write(struct.pack("<4sQHHIIQQQQ", *large))
            self._file.write(struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1))
        few = min(count, _MAX_16)
        sizes = min(size, _MAX_32), min(start, _MAX_32)
        row = (b"PK\x05\x06", 0, 0, few, few, *sizes, len(self._comment))
        self._file.write(struct.pack("<4sHHHHIIH", *row) + self._comment)

    def _claim(self, *names: str) -> None:
        for name in names:
            if name in self._names:
                msg = f"an archive would have two files `{name}`"
                raise BuildError(msg, hint="remove one of them")
            self._names.add(name)

    def _write(self, member: Member, packed: _Packed) -> None:
        name, flags = _encoded(member.name)
        length = packed.size if packed.data is None else len(packed.data)
        method = _STORED if packed.data is None else _DEFLATED
        offset = self._file.tell()
        large = packed.size >= _MAX_32
        sizes = struct.pack("<QQ", packed.size, length) if large else b""
        version = _ZIP64_VERSION if large or offset >= _MAX_32 else _PLAIN_VERSION
        numbers = (_MAX_32, _MAX_32) if large else (length, packed.size)
        shared = (version, flags, method, _TIME, _DATE, packed.crc, *numbers, len(name))
        extra = _extra(sizes)
        self._file.write(struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", *shared, len(extra)))
        self._file.write(name + extra)
        with _content(member.source if packed.data is None else packed.data) as content:
            self._file.write(content)
        extra = _extra(sizes + (struct.pack("<Q", offset) if offset >= _MAX_32 else b""))
        mode = (_REGULAR | (0o755 if member.executable else 0o644)) << 16
        row = (b"PK\x01\x02", _UNIX | version, *shared, len(extra), 0, 0, 0, mode)
        head = struct.pack("<4sHHHHHHIIIHHHHHII", *row, min(offset, _MAX_32))
        self._directory.append(head + name + extra)


def _extra(numbers: bytes) -> bytes:
    """Return the extra field for numbers too large for the usual fields."""
    return struct.pack("<HH", 1, len(numbers)) + numbers if numbers else b""


def _encoded(name: str) -> tuple[bytes, int]:
    try:
        encoded = name.encode()
    except UnicodeEncodeError as error:
        msg = f"the file name {name!r} is not UTF-8"
        raise HostError(msg, hint="rename it: archives need portable names") from error
    return encoded, 0 if name.isascii() else _UTF8_NAME


def _size(source: Path | bytes) -> int:
    return source.stat().st_size if isinstance(source, Path) else len(source)


@contextmanager
def _content(source: Path | bytes | bytearray) -> Iterator[bytes | bytearray | mmap.mmap]:
    """Yield the bytes of a source; files are mapped."""
    if not isinstance(source, Path):
        yield source
        return
    with source.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content


def _pack(source: Path | bytes) -> _Packed:
    """Compress a member, unless that does not make it smaller."""
    with _content(source) as content:
        size, crc = len(content), deflate.crc32(content)
        digest = sha256(content).digest()
        data = deflate.deflate_compress(content, _LEVEL)
    return _Packed(data if len(data) < size else None, size, crc, digest)
