"""Reads `torchyard.lock`, and writes it."""

import re

import msgspec

from torchyard.errors import ConfigError
from torchyard.host.files import exists, read_text
from torchyard.model.lock import BuildLock

_WHEEL = re.compile(r"[\w.]+-[\w.!+]+(-\d\w*)?(-[\w.]+){3}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HINT = "`torchyard lock` writes it anew"
_HEAD = """\
# Written by `torchyard lock`: the wheels that each cell is built with, by name and SHA-256.
# Keep it under version control, beside its torchyard.toml.
"""


def build_lock_path(file: str) -> str:
    """Return the path of the lock of a file: `torchyard.lock` for `torchyard.toml`."""
    return f"{file.removesuffix('.toml')}.lock"


def read_build_lock(file: str) -> BuildLock:
    """Return the lock of a file; an empty one if there is none."""
    path = build_lock_path(file)
    if not exists(path):
        return BuildLock()
    return parse_build_lock(read_text(path), path)


def parse_build_lock(text: str, path: str) -> BuildLock:
    """Parse a lock; each wheel of an environment must have a digest."""
    try:
        lock = msgspec.toml.decode(text, type=BuildLock)
    except msgspec.DecodeError as error:
        msg = f"`{path}` can't be read: {error}"
        raise ConfigError(msg, hint=_HINT) from error
    for name, digest in lock.files.items():
        if not _WHEEL.fullmatch(name) or not _SHA256.fullmatch(digest):
            msg = f"`{path}` has no wheel and SHA-256 in `{name} = {digest}`"
            raise ConfigError(msg, hint=_HINT)
    for environment, names in lock.environments.items():
        for name in names:
            if name not in lock.files:
                msg = f"`{path}` has no SHA-256 of `{name}`, which `{environment}` contains"
                raise ConfigError(msg, hint=_HINT)
    return lock


def build_lock_text(lock: BuildLock) -> str:
    """Return a lock as TOML, sorted, so that it changes only where something has changed."""
    lines = [f"{_HEAD}version = {lock.version}\n\n[environments]\n"]
    for name, wheels in sorted(lock.environments.items()):
        listed = "".join(f'  "{wheel}",\n' for wheel in sorted(wheels))
        lines.append(f'"{name}" = [\n{listed}]\n')
    lines.append("\n[files]\n")
    lines += [f'"{name}" = "{digest}"\n' for name, digest in sorted(lock.files.items())]
    return "".join(lines)
