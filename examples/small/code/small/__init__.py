"""The library, called through ctypes."""

import ctypes
from pathlib import Path

_library = ctypes.CDLL(Path(__file__).parent / "lib" / "libsmall.so")
add, multiply = _library.add, _library.multiply
