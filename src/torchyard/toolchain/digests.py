"""Digests of large programs, remembered while a file looks unchanged."""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

import msgspec

DIGESTS = "digests.json"
"""What the file is called, among those that torchyard writes beside a project's."""

_known: dict[str, str] = {}


class Digests:
    """Finds the sha256 of files; remembers it in this process and, if told where, in a file."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        if file:
            _known.update(_read(file))

    def of(self, files: Mapping[str, Path]) -> str:
        """One digest for several files, each known by what it does and not by where it is."""
        lines = [f"{name} {self._of_file(path)}\n" for name, path in sorted(files.items())]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def _of_file(self, path: Path) -> str:
        real = path.resolve()
        about = real.stat()
        key = f"{real}|{about.st_size}|{about.st_mtime_ns}|{about.st_ino}"
        if key not in _known:
            with real.open("rb") as stream:
                _known[key] = hashlib.file_digest(stream, "sha256").hexdigest()
            if self._file:
                with suppress(OSError):  # it saves time, nothing else
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
