"""The zstd module of Python 3.14, or its backport."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import compress, decompress
else:
    from backports.zstd import compress, decompress

__all__ = ["compress", "decompress"]
