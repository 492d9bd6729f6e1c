"""Unpacking the members of zip archives with the fastest library.

libdeflate is, for what fits into memory; ISA-L for what has to be streamed. Its pieces are small
enough that the checksums, which follow, find them in the processor's cache.
"""

from collections.abc import Callable, Iterator
from typing import cast

import deflate
from isal import igzip_lib

from torchyard.package.zip.directory import STORED, ZipEntry
from torchyard.package.zip.end import ReadAt

SMALL = 1 << 20
"""Members up to this size are read in one go."""
_IN = 64 << 10
_OUT = 256 << 10
IsalError = cast("type[Exception]", igzip_lib.IsalError)


Progress = Callable[[int], None]
"""Called with the number of further bytes of the file that have been read."""


def ignore_progress(_: int) -> None:
    """Ignore progress."""


class BadDataError(Exception):
    """The stored data of a member is not a stream of its declared kind."""


def whole(read: ReadAt, entry: ZipEntry) -> bytes | bytearray:
    """Return a small member; at most one byte more than it should have."""
    data = read(entry.stored, entry.data)
    if len(data) < entry.stored:
        raise BadDataError
    if entry.method == STORED:
        return data
    try:
        return deflate.deflate_decompress(data, max(entry.size, 1))
    except deflate.DeflateError:
        pass  # it may be too long, which libdeflate reports as damaged
    return b"".join(pieces(read, entry))


def pieces(read: ReadAt, entry: ZipEntry, progress: Progress = ignore_progress) -> Iterator[bytes]:
    """Yield the pieces of a member; at most one byte more than it should have."""
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
            raise BadDataError  # it even asks for more when it has all, so one must try
        left -= len(piece)
        if piece:
            yield piece
    if left and (offset < end or stream.unused_data):
        raise BadDataError
