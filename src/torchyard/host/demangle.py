"""C++ names as they were written."""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.process import capture

MANGLED = re.compile(r"_Z[\w.$]+")
_BACK = re.compile(r"[ST][0-9A-Z]*_")
"""A part of a name that stands for one in front of it."""
_LONGEST = 2000
_AT_ONCE = 500
"""So many names are surely no more than a command line can have."""
_MOST_BACK = 40
_LARGEST = 200_000


def demangled(symbols: Iterable[str]) -> dict[str, str]:
    """The names of C++ among some symbols, if there is a program that can tell.

    A package may come from anywhere: names that could become very long are left as they are.
    """
    mangled = [name for name in dict.fromkeys(symbols) if MANGLED.fullmatch(name)]
    mangled = [name for name in mangled if not _swells(name)]
    found: dict[str, str] = {}
    with suppress(HostError):
        for start in range(0, len(mangled), _AT_ONCE):
            some = mangled[start : start + _AT_ONCE]
            lines = capture(["c++filt", *some], cwd=Path.cwd()).splitlines()
            found.update(zip(some, lines, strict=True))
    return found


def _swells(name: str) -> bool:
    """Whether a name could become too long: at worst, three parts each stand for all in front."""
    back = len(_BACK.findall(name))
    if len(name) > _LONGEST or back > _MOST_BACK:
        return True
    return len(name) * 3 ** (back / 3) > _LARGEST
