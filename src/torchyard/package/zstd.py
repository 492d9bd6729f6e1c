"""Python's own zstd, which has it since 3.14, or the same for older ones."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError, ZstdFile, compress, decompress
else:
    from backports.zstd import ZstdDecompressor, ZstdError, ZstdFile, compress, decompress

LEVEL = 1
"""For texts that repeat themselves, as lists of files do, no slower one makes them smaller."""

__all__ = ["LEVEL", "ZstdDecompressor", "ZstdError", "ZstdFile", "compress", "decompress"]
