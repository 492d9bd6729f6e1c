"""Unpack members of a zip archive to files; any fault is an error."""

import os
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import deflate
from isal import igzip_lib

from torchyard.errors import CheckError
from torchyard.host.machine import processors
from torchyard.package.limits import LIMITS
from torchyard.package.zip.directory import STORED, Directory, ZipEntry, read_directory, reader_of
from torchyard.package.zip.inflate import BadDataError, IsalError, pieces

_ENOUGH = 512
"""Stored bytes that suffice for the first unpacked ones, with any Huffman tables."""
_PLAIN = (0, stat.S_IFREG, stat.S_IFDIR)


def unpack_zip(archive: Path, folder: Path) -> None:
    """Unpack an archive, with its files' modes, to a folder of its own.

    An archive with links is refused: later members could be written through them.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with archive.open("rb") as file, ThreadPoolExecutor(processors()) as pool:
        entries = plain_directory(archive.name, file).entries

        def write(entry: ZipEntry) -> None:
            path = folder / entry.name
            if entry.name.endswith("/"):
                path.mkdir(parents=True, exist_ok=True)
                return
            unpack_member(file, entry, path)
            path.chmod(0o755 if entry.mode & 0o100 else 0o644)

        list(pool.map(write, entries))


def plain_directory(name: str, file: BinaryIO) -> Directory:
    """Return the members of an unambiguous archive with only files and folders."""
    directory = sound_directory(name, file)
    for entry in directory.entries:
        if stat.S_IFMT(entry.mode) not in _PLAIN:
            msg = f"`{name}` has a link or special file, `{entry.name}`"
            raise CheckError(msg, hint="let the project's backend pack the file itself")
    return directory


def sound_directory(name: str, file: BinaryIO) -> Directory:
    """Return the members of an archive; refuse an ambiguous one."""
    directory = read_directory(file)
    for fault in directory.faults:
        where = f"{fault.member} " if fault.member else ""
        msg = f"`{name}` can't be unpacked: {where}{fault.what}"
        raise CheckError(msg, hint="create the archive again")
    return directory


def beginning_of(file: BinaryIO, entry: ZipEntry, size: int) -> bytes:
    """Return the first bytes of a member without reading much more; fewer if it is damaged."""
    start = os.pread(file.fileno(), min(entry.stored, _ENOUGH), entry.data)
    if entry.method == STORED:
        return start[:size]
    try:
        return igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE).decompress(start, size)
    except IsalError:
        return b""


def content_of(file: BinaryIO, entry: ZipEntry) -> bytes:
    """Return the content of a member; refuse one larger than any text."""
    _refuse_more(entry, LIMITS.text)
    return b"".join(_sound_pieces(file, entry))


def unpack_member(file: BinaryIO, entry: ZipEntry, to: Path) -> None:
    """Write a member to a file."""
    _refuse_more(entry, LIMITS.most(entry.stored))
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("wb", buffering=0) as out:
        for piece in _sound_pieces(file, entry):
            out.write(piece)


def _refuse_more(entry: ZipEntry, most: int) -> None:
    if entry.size > most:
        msg = f"`{entry.name}` unpacks to {entry.size} bytes; the limit is {most}"
        raise CheckError(msg, hint="no package needs that much: find out which tool wrote it")


def _sound_pieces(file: BinaryIO, entry: ZipEntry) -> Iterator[bytes]:
    size = crc = 0
    try:
        for piece in pieces(reader_of(file), entry):
            size, crc = size + len(piece), deflate.crc32(piece, crc)
            yield piece
    except BadDataError:
        crc = -1
    if (size, crc) != (entry.size, entry.crc):
        msg = f"`{entry.name}` does not match its checksum"
        raise CheckError(msg, hint="the archive is damaged: get it again")
