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

_digests: dict[str, str] = {}


class Digests:
    """Computes the sha256 of files; caches it in this process and, if given, in a file."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        if file:
            _digests.update(_read(file))

    def of(self, files: Mapping[str, Path]) -> str:
        """Return a digest of several files, which identifies each by role, not by path."""
        lines = [f"{name} {self.of_file(path)}\n" for name, path in sorted(files.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def of_file(self, path: Path) -> str:
        """Return the digest of a file."""
        real = path.resolve()
        about = real.stat()
        key = f"{real}|{about.st_size}|{about.st_mtime_ns}|{about.st_ino}"
        if key not in _digests:
            with real.open("rb") as stream:
                _digests[key] = hashlib.file_digest(stream, "sha256").hexdigest()
            if self._file:
                with suppress(OSError):  # it is only a cache
                    _write(self._file, _read(self._file) | {key: _digests[key]})
        return _digests[key]


def _read(file: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError):
        return {}


def _write(file: Path, digests: Mapping[str, str]) -> None:
    with suppress(OSError):  # it is only a cache
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, part = mkstemp(prefix=f".{file.name}-", dir=file.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(msgspec.json.encode(digests))
        Path(part).replace(file)
