"""Symbols of torch wheels on disk, so that each wheel is read once.

A file has a line with the version of its format, the length of a JSON text about the wheel, that
text, the digests, and the SHA-256 of everything before. An incomplete file, or one of another
version, is written again.
"""

import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from torchyard.checks.torch_symbols import WIDTH, TorchSymbols
from torchyard.host.durable import write_durably
from torchyard.model.values import UNDECODABLE, Value

_FORM = f"torchyard symbols 1 {sys.byteorder}\n".encode()
_LENGTH, _CHECK = 4, 32


class _About(Value, kw_only=True):
    file: str
    version: str
    libraries: tuple[str, ...]
    toolkits: tuple[str, ...]


def load_symbols_file(path: Path) -> TorchSymbols | None:
    """Read a file; None if it is missing or incomplete."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    body, check = data[:-_CHECK], data[-_CHECK:]
    if not body.startswith(_FORM) or sha256(body).digest() != check:
        return None
    start = len(_FORM) + _LENGTH
    end = start + int.from_bytes(body[len(_FORM) : start], "little")
    try:
        about = msgspec.json.decode(body[start:end], type=_About)
    except UNDECODABLE:
        return None
    digests = body[end:]
    if len(digests) % WIDTH:
        return None
    return TorchSymbols(
        file=about.file,
        version=about.version,
        libraries=about.libraries,
        toolkits=about.toolkits,
        digests=digests,
    )


def save_symbols_file(path: Path, symbols: TorchSymbols) -> None:
    """Write a file completely or not at all; ignore errors of the disk."""
    about = _About(
        file=symbols.file,
        version=symbols.version,
        libraries=symbols.libraries,
        toolkits=symbols.toolkits,
    )
    text = msgspec.json.encode(about)
    body = b"".join((_FORM, len(text).to_bytes(_LENGTH, "little"), text, symbols.digests))
    with suppress(OSError):
        write_durably(path, (body, sha256(body).digest()), replace=True)
