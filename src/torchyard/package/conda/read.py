"""Reading conda packages: `.conda`, a zip archive with two tar archives in it, and `.tar.bz2`."""

import bz2
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO, Protocol

import deflate
import msgspec

from torchyard.host.zstd import ZstdDecompressor, ZstdError
from torchyard.package.conda.name import SUFFIX
from torchyard.package.contents import FaultKind, PackageFile
from torchyard.package.limits import Faults, Limits
from torchyard.package.members import FoundMembers, MemberReader, with_start
from torchyard.package.tar_reader import Stream, TarError, TarMember, Type, tar_members
from torchyard.package.zip.directory import STORED, ZipEntry, read_directory
from torchyard.package.zip.inflate import Progress, ignore_progress
from torchyard.package.zip.names import check_member_names

_IN = 128 << 10
_OUT = 256 << 10

Unpack = Callable[[Progress], Iterator[bytes]]
"""Decompresses a file from its beginning."""


def read_conda(file: BinaryIO, name: str, limits: Limits, progress: Progress) -> FoundMembers:
    """Read a package of either kind."""
    if name.endswith(SUFFIX):
        return _read_new(file, name, limits, progress)
    found = FoundMembers(limits, Faults(limits.faults))
    handle = file.fileno()
    length = os.fstat(handle).st_size

    def unpack(progress: Progress) -> Iterator[bytes]:
        pieces = _streams(bz2.BZ2Decompressor, _parts(handle, 0, length, progress))
        return _unpacked(pieces, length, limits)

    inside: list[str] = []
    _read_tar(unpack, progress, "", found, inside)
    check_member_names(inside, found.faults)
    return found


def _read_new(file: BinaryIO, name: str, limits: Limits, progress: Progress) -> FoundMembers:
    directory = read_directory(file, limits)
    found = FoundMembers(limits, Faults(limits.faults, directory.faults))
    handle = file.fileno()
    stem = name.removesuffix(SUFFIX)
    expected = {"metadata.json", f"info-{stem}.tar.zst", f"pkg-{stem}.tar.zst"}
    names = {entry.name for entry in directory.entries}
    for missing in sorted(expected - names):
        found.faults.add(FaultKind.STRUCTURE, missing, "is missing")
    for other in sorted(names - expected):
        found.faults.add(FaultKind.STRUCTURE, other, "is no part of a conda package")
    inside: list[str] = []
    for entry in directory.entries:
        if not entry.sound:
            continue
        if entry.method != STORED:
            what = "is compressed once more, which conda packages must not be"
            found.faults.add(FaultKind.STRUCTURE, entry.name, what)
            continue
        _check_sum(handle, entry, found)
        if entry.name.endswith(".tar.zst"):
            unpack = partial(_zstandard, handle, entry, limits)
            _read_tar(unpack, progress, entry.name, found, inside)
    check_member_names(inside, found.faults)
    return found


def _check_sum(handle: int, entry: ZipEntry, found: FoundMembers) -> None:
    crc = 0
    for piece in _parts(handle, entry.data, entry.stored):
        crc = deflate.crc32(piece, crc)
    if crc != entry.crc:
        found.faults.add(FaultKind.CONTENT, entry.name, "is not what was packed: its CRC differs")


def _parts(
    handle: int, offset: int, size: int, progress: Progress = ignore_progress
) -> Iterator[bytes]:
    end = offset + size
    while offset < end:
        piece = os.pread(handle, min(_IN, end - offset), offset)
        if not piece:
            return
        offset += len(piece)
        progress(len(piece))
        yield piece


class _Decompressor(Protocol):
    """The common interface of the zstd and bzip2 decompressors."""

    def decompress(self, data: bytes, /, max_length: int) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


def _streams(new: Callable[[], _Decompressor], parts: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress consecutive compressed streams: a file may have several."""
    stream, begun = new(), False
    for part in parts:
        data = part
        while data or not stream.needs_input:
            begun = True
            try:
                out = stream.decompress(data, max_length=_OUT)
            except (ZstdError, OSError, ValueError, EOFError) as error:
                raise TarError(str(error)) from error
            data = b""
            if out:
                yield out
            if stream.eof:
                data, stream, begun = stream.unused_data, new(), False
                if not data:
                    break
    if begun:
        msg = "it is cut off"
        raise TarError(msg)


def _zstandard(handle: int, entry: ZipEntry, limits: Limits, progress: Progress) -> Iterator[bytes]:
    parts = _parts(handle, entry.data, entry.stored, progress)
    return _unpacked(_streams(ZstdDecompressor, parts), entry.stored, limits)


class _BombError(TarError):
    """The decompressed size exceeds the limits."""


def _unpacked(pieces: Iterator[bytes], stored: int, limits: Limits) -> Iterator[bytes]:
    """Yield decompressed pieces, up to the limits for packages."""
    total = 0
    most = min(limits.total, limits.most(stored))
    for piece in pieces:
        total += len(piece)
        if total > most:
            msg = f"unpacks to more than {most} bytes, from {stored}"
            raise _BombError(msg)
        yield piece


def _bounded(unpack: Unpack, most: int) -> Unpack:
    """Limit the total of all passes to some bytes, as each library may be read again."""
    total = 0

    def bounded(progress: Progress) -> Iterator[bytes]:
        nonlocal total
        for piece in unpack(progress):
            total += len(piece)
            if total > most:
                msg = f"must be unpacked too often to be read: to more than {most} bytes"
                raise _BombError(msg)
            yield piece

    return bounded


def _read_tar(
    unpack: Unpack, progress: Progress, archive: str, found: FoundMembers, names: list[str]
) -> None:
    """Read all members, and add their names to the package's other archive's."""
    unpack = _bounded(unpack, found.limits.total)
    stream = Stream(unpack(progress))
    try:
        for member in tar_members(stream, found.limits.directory):
            if len(names) == found.limits.members:
                found.faults.add(
                    FaultKind.BOMB, archive, f"has too many members: over {len(names)}"
                )
                break
            name = member.name.removeprefix("./")
            if member.type is Type.FOLDER:  # with or without a slash; `./` is the root itself
                names += [f"{name.removesuffix('/')}/"] if name not in ("", ".") else []
            else:
                names.append(name)
                found.files[name] = _file(name, member, stream, unpack, found)
    except _BombError as error:
        found.faults.add(FaultKind.BOMB, archive, str(error))
    except TarError as error:
        found.faults.add(FaultKind.STRUCTURE, archive, f"is damaged: {error}")


def _file(
    name: str, tar: TarMember, stream: Stream, unpack: Unpack, found: FoundMembers
) -> PackageFile:
    if tar.type is Type.LINK:
        found.check_link(name, tar.link)
        return PackageFile(name=name, size=0, link=tar.link)
    if tar.type is Type.SAME:
        other = found.files.get(tar.link.removeprefix("./"))
        if other is None:
            what = f"should be the same as `{tar.link}`, which is not there"
            found.faults.add(FaultKind.STRUCTURE, name, what)
            return PackageFile(name=name, size=0)
        return msgspec.structs.replace(other, name=name)
    member = MemberReader(found, name, tar.size)
    for piece in with_start(stream.take(tar.size)):
        member.feed(piece)

    def again() -> Iterator[bytes]:
        once_more = Stream(unpack(ignore_progress))
        once_more.skip_to(tar.offset)
        return with_start(once_more.take(tar.size))

    binary = member.finish(again)
    executable = bool(tar.mode & 0o111)
    return PackageFile(
        name=name, size=tar.size, digest=member.digest, executable=executable, binary=binary
    )
