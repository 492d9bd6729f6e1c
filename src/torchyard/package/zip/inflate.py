"""Unpack the members of zip archives with the fastest library.

These are libdeflate for members that fit into memory, and ISA-L for streams. Pieces are small
enough to be in the processor's cache for the checksums.
"""

from collections.abc import Callable, Iterator
from typing import cast

import deflate
from isal import igzip_lib

from torchyard.package.zip.directory import STORED, ZipEntry
from torchyard.package.zip.end import ReadAt

SMALL = 1 << 20
"""Members up to this size are read at once."""
_IN = 64 << 10
_OUT = 256 << 10
IsalError = cast("type[Exception]", igzip_lib.IsalError)


Progress = Callable[[int], None]
"""A function called with the number of bytes read since the last call."""


def ignore_progress(_: int) -> None:
    """Ignore progress."""


class BadDataError(Exception):
    """The stored data of a member is not a stream of its declared kind."""


def whole(read: ReadAt, entry: ZipEntry) -> bytes | bytearray:
    """Return a small member, with at most one byte too many."""
    data = read(entry.stored, entry.data)
    if len(data) < entry.stored:
        raise BadDataError
    if entry.method == STORED:
        return data
    try:
        return deflate.deflate_decompress(data, max(entry.size, 1))
    except deflate.DeflateError:
        pass  # libdeflate also fails if the member is too long
    return b"".join(pieces(read, entry))


def pieces(read: ReadAt, entry: ZipEntry, progress: Progress = ignore_progress) -> Iterator[bytes]:
    """Yield the pieces of a member, with at most one byte too many."""
    if entry.method == STORED:
        for offset in range(entry.data, entry.data + entry.stored, _OUT):
            size = min(_OUT, entry.data + entry.stored - offset)
            piece = read(size, offset)
            if len(piece) < size:
                raise BadDataError
            progress(size)
            yield piece
        return
    stream = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE)
    offset, end = entry.data, entry.data + entry.stored
    left = entry.size + 1
    while not stream.eof and left:
        data = read(min(_IN, end - offset), offset) if stream.needs_input else b""
        offset += len(data)
        progress(len(data))
        try:
            piece = stream.decompress(data, min(_OUT, left))
        except IsalError:
            raise BadDataError from None
        if not data and not piece and not stream.eof:
            raise BadDataError  # more input is requested even at the end
        left -= len(piece)
        if piece:
            yield piece
    if left and (offset < end or stream.unused_data):
        raise BadDataError
