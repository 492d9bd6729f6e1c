"""zstd from the standard library (Python 3.14 and newer), or its backport."""

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
"""The level; slower ones do not shrink repetitive texts, such as lists of files, further."""

LARGEST_TEXT = 4 << 30
"""Maximum size of a text to unpack at once."""

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
    """Decompress a large text whose frame has its size.

    `decompress` collects pieces and then copies them, which takes twice the memory and time.
    """
    size = get_frame_info(data).decompressed_size or 0
    if size > LARGEST_TEXT:
        msg = f"its declared size, {size} bytes, exceeds the limit of {LARGEST_TEXT}"
        raise ZstdError(msg)
    text, frame = bytearray(size), ZstdDecompressor()
    offset, piece = 0, frame.decompress(data, _PIECE)
    while piece and offset + len(piece) <= size:
        text[offset : offset + len(piece)] = piece
        offset += len(piece)
        piece = b"" if frame.eof else frame.decompress(b"", _PIECE)
    if offset != size or not frame.eof:
        msg = "its size differs from the declared one"
        raise ZstdError(msg)
    return text
