"""Secrets of the caller: kept out of the environment, and out of all output.

A program's children inherit its environment, and every process of the same user can read it in
`/proc/PID/environ`, which shows the memory that the kernel wrote it to when the program began. So
a secret is removed from both, and kept in a variable of this module.
"""

import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from torchyard.host.files import exists, realpath

HIDDEN = "***"

_SHORTEST = 4
"""Shorter values are not redacted: they would match in ordinary text."""

_USER = re.compile(r"(?<=://)[^/@\s\"'`]+(?=@)")
"""The user name and password in a URL."""

_FILES = (
    "TORCHYARD_STORE_KEY",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "NETRC",
)

_taken: dict[str, str] = {}


def take(names: Iterable[str]) -> None:
    """Move variables from this program's environment into this module."""
    for name in names:
        value = os.environ.get(name)
        if value is not None:
            _wipe(name)
            del os.environ[name]
            _taken[name] = value


def give(variables: Mapping[str, str]) -> None:
    """Add secrets that did not come through the environment."""
    _taken.update(variables)


def taken() -> Mapping[str, str]:
    return MappingProxyType(_taken)


def _wipe(name: str) -> None:
    """Overwrite a variable's initial memory: `unsetenv` only drops the pointer to it."""
    import ctypes  # noqa: PLC0415 - rarely needed

    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    place = libc.getenv(os.fsencode(name))
    if place:
        ctypes.memset(place, 0, len(ctypes.string_at(place)))


def secret_files() -> list[str]:
    """Return the files that hold secrets of the caller, by the variables that name them."""
    named = (os.environ.get(name) for name in _FILES)
    return sorted({realpath(path) for path in named if path and exists(path)})


def redact(text: str, also: Iterable[str] = ()) -> str:
    """Return a text without secrets, and without user names and passwords in URLs."""
    for value in sorted({*_taken.values(), *also}, key=len, reverse=True):  # one may hold another
        if len(value) >= _SHORTEST:
            quoted = msgspec.json.encode(value)[1:-1].decode()
            text = text.replace(value, HIDDEN).replace(quoted, HIDDEN)
    return _USER.sub(HIDDEN, text) if "://" in text and "@" in text else text
