"""Secrets of the caller: out of the environment, and out of everything that is told.

A program's children inherit its environment, and every process of the same user can read it in
`/proc/PID/environ`, which shows the memory that the kernel wrote it to when the program began. So
a secret is removed from both, and kept only where nobody looks for it.
"""

import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

HIDDEN = "***"

_SHORTEST = 4
"""A shorter value would be found in half of all lines."""

_USER = re.compile(r"(?<=://)[^/@\s\"'`]+(?=@)")
"""Who somebody is and their password, in an address."""

_taken: dict[str, str] = {}


def take(names: Iterable[str]) -> None:
    """Take variables out of this program's environment, and remember them."""
    for name in names:
        value = os.environ.get(name)
        if value is not None:
            _wipe(name)
            del os.environ[name]
            _taken[name] = value


def give(variables: Mapping[str, str]) -> None:
    """Remember secrets that came by another way."""
    _taken.update(variables)


def taken() -> Mapping[str, str]:
    return MappingProxyType(_taken)


def _wipe(name: str) -> None:
    """Overwrite a variable where the kernel wrote it: to remove it is to forget only the place."""
    import ctypes  # noqa: PLC0415 - few have a secret

    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    place = libc.getenv(os.fsencode(name))
    if place:
        ctypes.memset(place, 0, len(ctypes.string_at(place)))


def redact(text: str, also: Iterable[str] = ()) -> str:
    """A text in which no secret is left, nor anybody's name and password in an address."""
    for value in sorted({*_taken.values(), *also}, key=len, reverse=True):  # one may hold another
        if len(value) >= _SHORTEST:
            quoted = msgspec.json.encode(value)[1:-1].decode()
            text = text.replace(value, HIDDEN).replace(quoted, HIDDEN)
    return _USER.sub(HIDDEN, text) if "://" in text and "@" in text else text
