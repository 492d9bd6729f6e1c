"""Demangled C++ names."""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.process import capture

MANGLED = re.compile(r"_Z[\w.$]+")
_BACK = re.compile(r"[ST][0-9A-Z]*_")
"""A back-reference to an earlier part of a name."""
_LONGEST = 2000
_AT_ONCE = 500
"""Names in one call: within every system's limit for a command line."""
_MOST_BACK = 40
_LARGEST = 200_000


def demangled(symbols: Iterable[str]) -> dict[str, str]:
    """Return the demangled form of the C++ symbols, if `c++filt` is installed.

    Packages may be hostile: names that could expand without bound are left unchanged.
    """
    mangled = [name for name in dict.fromkeys(symbols) if MANGLED.fullmatch(name)]
    mangled = [name for name in mangled if not _swells(name)]
    found: dict[str, str] = {}
    with suppress(HostError):
        for start in range(0, len(mangled), _AT_ONCE):
            batch = mangled[start : start + _AT_ONCE]
            lines = capture(["c++filt", *batch], cwd=Path.cwd()).splitlines()
            found.update(zip(batch, lines, strict=True))
    return found


def _swells(name: str) -> bool:
    """Return whether a name could expand too far: at worst, three parts each repeat all before."""
    back = len(_BACK.findall(name))
    if len(name) > _LONGEST or back > _MOST_BACK:
        return True
    return len(name) * 3 ** (back / 3) > _LARGEST
