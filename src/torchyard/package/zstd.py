"""Python's own zstd, which has it since 3.14, or the same for older ones."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import (
        ZstdDecompressor,
        ZstdError,
        ZstdFile,
        compress,
        decompress,
        get_frame_info,
    )
else:
    from backports.zstd import (
        ZstdDecompressor,
        ZstdError,
        ZstdFile,
        compress,
        decompress,
        get_frame_info,
    )

LEVEL = 1
"""For texts that repeat themselves, as lists of files do, no slower one makes them smaller."""

LARGEST_TEXT = 4 << 30
"""Bytes of a text that may be unpacked at once."""

_PIECE = 128 << 10

__all__ = [
    "LEVEL",
    "ZstdDecompressor",
    "ZstdError",
    "ZstdFile",
    "compress",
    "decompress",
    "decompress_text",
]


def decompress_text(data: bytes) -> bytearray:
    """Decompress a large text that was compressed at once, and so says how large it is.

    `decompress` collects pieces and then copies all of them, which takes twice the memory and time.
    """
    size = get_frame_info(data).decompressed_size or 0
    if size > LARGEST_TEXT:
        msg = f"it says that it has {size} bytes, more than the limit of {LARGEST_TEXT}"
        raise ZstdError(msg)
    text, frame = bytearray(size), ZstdDecompressor()
    place, piece = 0, frame.decompress(data, _PIECE)
    while piece and place + len(piece) <= size:
        text[place : place + len(piece)] = piece
        place += len(piece)
        piece = b"" if frame.eof else frame.decompress(b"", _PIECE)
    if place != size or not frame.eof:
        msg = "it has another size than it says"
        raise ZstdError(msg)
    return text
