"""Secrets of the caller: kept out of the environment, and out of all output.

A program's children inherit its environment, and every process of the same user can read it in
`/proc/PID/environ`, which shows the memory that the kernel wrote at the program's start. So
a secret is removed from both, and kept in a variable of this module.
"""

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from urllib.parse import quote, unquote

import msgspec

from torchyard.host.files import exists, realpath

HIDDEN = "***"

_SHORTEST = 4
"""Shorter values are not redacted: they would match in ordinary text."""

_USER = re.compile(r"(?<=://)[^/@\s\"'`]+(?=@)")
"""The user name and password in a URL."""

_LOGIN = re.compile(r"(?:^|://|\s)([^/\s]+)@")
"""User name and password in a variable with several addresses, or one without a scheme."""

_FILES = (
    "TORCHYARD_KEY",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "NETRC",
)

_FETCHING = re.compile(r"(?i:https?|all)_(?i:proxy)|(PIP|UV)_\w+")
"""Variables for fetching packages: addresses with passwords, or passwords alone."""

_taken: dict[str, str] = {}


def fetching_secrets() -> list[str]:
    """Return the variables of proxies and indexes with a password or a token."""
    return [
        name
        for name, text in os.environ.items()
        if _FETCHING.fullmatch(name) and ("@" in text or name.endswith(("_PASSWORD", "_TOKEN")))
    ]


def caller_environment() -> dict[str, str]:
    """Return the environment with the taken variables for fetching packages."""
    return {**taken_for_fetching(), **os.environ}


def taken_for_fetching() -> dict[str, str]:
    """Return the taken variables for fetching packages."""
    return {name: text for name, text in _taken.items() if _FETCHING.fullmatch(name)}


def take(names: Iterable[str]) -> None:
    """Move variables from this program's environment into this module."""
    for name in names:
        value = os.environ.get(name)
        if value is not None:
            _wipe(name)
            del os.environ[name]
            _taken[name] = value


def give(variables: Mapping[str, str]) -> None:
    """Add secrets from outside the environment."""
    _taken.update(variables)


def taken() -> Mapping[str, str]:
    return MappingProxyType(_taken)


def _wipe(name: str) -> None:
    """Overwrite a variable's initial memory: `unsetenv` only drops the pointer to it."""
    import ctypes  # noqa: PLC0415 - rarely needed

    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    address = libc.getenv(os.fsencode(name))
    if address:
        ctypes.memset(address, 0, len(ctypes.string_at(address)))


def secret_files() -> list[str]:
    """Return the files with the caller's secrets, from the variables that name them."""
    named = (os.environ.get(name) for name in _FILES)
    return sorted({realpath(path) for path in named if path and exists(path)})


def redact(text: str, also: Iterable[str] = ()) -> str:
    """Return a text without secrets, and without user names and passwords in URLs."""
    found = {word for value in {*_taken.values(), *also} for word in _spellings(value)}
    for word in sorted(found, key=len, reverse=True):  # one may contain another
        if len(word) >= _SHORTEST:
            text = text.replace(word, HIDDEN)
    return _USER.sub(HIDDEN, text) if "://" in text and "@" in text else text


def _spellings(value: str) -> Iterator[str]:
    """Yield the spellings of a secret in texts; for an address, of its password or token only."""
    logins = _LOGIN.findall(value)
    for word in [login.partition(":")[2] or login for login in logins] or [value]:
        yield from (word, unquote(word), quote(word, safe=""))
        yield msgspec.json.encode(word)[1:-1].decode()
    yield from (b64encode(unquote(login).encode()).decode() for login in logins)
