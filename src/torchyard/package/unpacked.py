"""Single members of a zip archive, for those who need only a few; damaged ones are errors."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import deflate
from isal import igzip_lib

from torchyard.errors import BuildError
from torchyard.package.inflate import BadDataError, pieces
from torchyard.package.limits import LIMITS
from torchyard.package.zip_reader import STORED, Entry

_ENOUGH = 512
"""How many stored bytes give a few unpacked ones, whatever tables they begin with."""
_IsalError = cast("type[Exception]", igzip_lib.IsalError)


def beginning_of(file: BinaryIO, entry: Entry, size: int) -> bytes:
    """The first few bytes of a member, at no more cost than theirs; fewer if it is damaged."""
    start = os.pread(file.fileno(), min(entry.stored, _ENOUGH), entry.data)
    if entry.method == STORED:
        return start[:size]
    try:
        return igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE).decompress(start, size)
    except _IsalError:
        return b""


def content_of(file: BinaryIO, entry: Entry) -> bytes:
    """A member as a whole; one that is larger than any text is refused."""
    _refuse_more(entry, LIMITS.text)
    return b"".join(_sound_pieces(file, entry))


def unpack_member(file: BinaryIO, entry: Entry, to: Path) -> None:
    """Write a member to a file."""
    _refuse_more(entry, LIMITS.most(entry.stored))
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("wb", buffering=0) as out:
        for piece in _sound_pieces(file, entry):
            out.write(piece)


def _refuse_more(entry: Entry, most: int) -> None:
    if entry.size > most:
        msg = f"`{entry.name}` unpacks to {entry.size} bytes, and {most} is the most"
        raise BuildError(msg, hint="no package needs that: find out who made it")


def _sound_pieces(file: BinaryIO, entry: Entry) -> Iterator[bytes]:
    size = crc = 0
    try:
        for piece in pieces(file.fileno(), entry):
            size, crc = size + len(piece), deflate.crc32(piece, crc)
            yield piece
    except BadDataError:
        crc = -1
    if (size, crc) != (entry.size, entry.crc):
        msg = f"what is in `{entry.name}` is not what was put there"
        raise BuildError(msg, hint="the archive is damaged: get it again")
