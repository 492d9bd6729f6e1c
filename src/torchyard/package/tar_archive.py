"""Read compressed tar archives in packages of any format."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

import msgspec

from torchyard.host.zstd import ZstdError
from torchyard.package.contents import FaultKind, PackageFile
from torchyard.package.limits import Limits
from torchyard.package.members import FoundMembers, MemberReader, with_start
from torchyard.package.tar_reader import Stream, TarError, TarMember, Type, tar_members
from torchyard.package.zip.inflate import Progress, ignore_progress

_IN = 128 << 10
_OUT = 256 << 10

_Unpack = Callable[[Progress], Iterator[bytes]]
"""A function that decompresses an archive from its start."""


class Decompressor(Protocol):
    """The common interface of the zstd and bzip2 decompressors."""

    def decompress(self, data: bytes, /, max_length: int) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


class CompressedTar(NamedTuple):
    """A compressed tar archive: a range of a file, and its decompressor."""

    decompressor: Callable[[], Decompressor]
    handle: int
    """The file's descriptor."""
    offset: int
    size: int

    def unpack(self, limits: Limits, progress: Progress) -> Iterator[bytes]:
        """Yield the archive in pieces, up to the limits for packages."""
        stored = file_pieces(self.handle, self.offset, self.size, progress)
        return _limited(_streams(self.decompressor, stored), self.size, limits)


def file_pieces(
    handle: int, offset: int, size: int, progress: Progress = ignore_progress
) -> Iterator[bytes]:
    """Yield a part of a file in pieces, and report the size of each."""
    end = offset + size
    while offset < end:
        piece = os.pread(handle, min(_IN, end - offset), offset)
        if not piece:
            return
        offset += len(piece)
        progress(len(piece))
        yield piece


def _streams(new: Callable[[], Decompressor], parts: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress consecutive compressed streams, as a file may have several."""
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


class _BombError(TarError):
    """The decompressed size exceeds the limits."""


def _limited(unpacked: Iterator[bytes], stored: int, limits: Limits) -> Iterator[bytes]:
    """Yield decompressed pieces, up to the limits for packages."""
    total = 0
    most = min(limits.total, limits.most(stored))
    for piece in unpacked:
        total += len(piece)
        if total > most:
            msg = f"unpacks to more than {most} bytes, from {stored}"
            raise _BombError(msg)
        yield piece


def _bounded(unpack: _Unpack, most: int) -> _Unpack:
    """Limit the total of all passes, as each library may be read again."""
    total = 0

    def bounded(progress: Progress) -> Iterator[bytes]:
        nonlocal total
        for piece in unpack(progress):
            total += len(piece)
            if total > most:
                msg = f"needs more than {most} unpacked bytes for all passes"
                raise _BombError(msg)
            yield piece

    return bounded


def read_tar(
    tar: CompressedTar, progress: Progress, archive: str, found: FoundMembers, names: list[str]
) -> None:
    """Add all members of an archive to `found`, and all names in it to `names`.

    `archive` is its name in the package, for faults; empty if it is the package itself.
    """
    unpack = _bounded(partial(tar.unpack, found.limits), found.limits.total)
    stream = Stream(unpack(progress))
    try:
        for member in tar_members(stream, found.limits.directory):
            if len(names) == found.limits.members:
                found.faults.add(
                    FaultKind.BOMB, archive, f"has too many members: over {len(names)}"
                )
                break
            name = member.name.removeprefix("./")
            if member.type is Type.FOLDER:  # with or without a slash; `./` is the root
                names += [f"{name.removesuffix('/')}/"] if name not in ("", ".") else []
            else:
                names.append(name)
                found.files[name] = _file(name, member, stream, unpack, found)
    except _BombError as error:
        found.faults.add(FaultKind.BOMB, archive, str(error))
    except TarError as error:
        found.faults.add(FaultKind.STRUCTURE, archive, f"is damaged: {error}")


def _file(
    name: str, tar: TarMember, stream: Stream, unpack: _Unpack, found: FoundMembers
) -> PackageFile:
    if tar.type is Type.LINK:
        found.check_link(name, tar.link)
        return PackageFile(name=name, size=0, link=tar.link)
    if tar.type is Type.SAME:
        other = found.files.get(tar.link.removeprefix("./"))
        if other is None:
            what = f"is a hard link to `{tar.link}`, which is missing"
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
