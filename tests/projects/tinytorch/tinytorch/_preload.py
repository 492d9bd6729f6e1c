"""CUDA's libraries are in other wheels, and these may be in another folder of sys.path.

Then no RPATH leads there; so they are loaded by their place, as PyTorch does it.
"""

import ctypes
import sys
from pathlib import Path

from . import version  # noqa: TID252 - linted where it is not installed


def preload() -> None:
    major = (version.cuda or "").partition(".")[0]
    places = (Path(folder, f"nvidia/cu{major}/lib/libcudart.so.{major}") for folder in sys.path)
    for place in places:
        if major and place.exists():
            ctypes.CDLL(str(place), mode=ctypes.RTLD_GLOBAL)
            return
