"""Digests of large programs, cached while size, time and inode of a file are unchanged."""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

import msgspec

DIGESTS = "digests.json"
"""Name of the file that caches digests, in torchyard's directory."""

_known: dict[str, str] = {}


class Digests:
    """Computes the sha256 of files; caches it in this process and, if one is given, in a file."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        if file:
            _known.update(_read(file))

    def of(self, files: Mapping[str, Path]) -> str:
        """Return one digest for several files, each identified by its role instead of its path."""
        lines = [f"{name} {self.of_file(path)}\n" for name, path in sorted(files.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def of_file(self, path: Path) -> str:
        """Return the digest of a file."""
        real = path.resolve()
        about = real.stat()
        key = f"{real}|{about.st_size}|{about.st_mtime_ns}|{about.st_ino}"
        if key not in _known:
            with real.open("rb") as stream:
                _known[key] = hashlib.file_digest(stream, "sha256").hexdigest()
            if self._file:
                with suppress(OSError):  # only a cache
                    _write(self._file, _read(self._file) | {key: _known[key]})
        return _known[key]


def _read(file: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError):
        return {}


def _write(file: Path, known: Mapping[str, str]) -> None:
    with suppress(OSError):  # as above
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, part = mkstemp(prefix=f".{file.name}-", dir=file.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(msgspec.json.encode(known))
        Path(part).replace(file)
