"""The log of a job: every line with its time."""

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from torchyard.host.secrets import redact

STAMP = len("2026-11-15T05:16:14.123Z ")
"""The length of the time at the start of each line."""


_TAIL = 1 << 16
"""Bytes at the end of an existing log to search first for its last time."""


class Log:
    """A log file: lines are appended without the caller's secrets.

    Times never decrease, even across runs and if the clock jumps.
    """

    def __init__(self, path: Path) -> None:
        last, is_cut = _last_time(path)
        self._file = path.open("a", encoding="utf-8", errors="replace", buffering=1)
        self._wall = max(last, datetime.now(UTC))
        self._began = time.monotonic()
        if is_cut:
            self._file.write("\n")

    def add(self, line: str) -> None:
        now = self._wall + timedelta(seconds=time.monotonic() - self._began)
        stamp = f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z "
        self._file.write(stamp + redact(line).replace("\n", f"\n{stamp}") + "\n")

    def mark(self) -> int:
        """Return the offset of the next line in the file."""
        return self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _last_time(path: Path) -> tuple[datetime, bool]:
    """Return the time of a log's last line, and whether a full disk cut the line."""
    reach, tail, size = _TAIL, b"", path.stat().st_size if path.exists() else 0
    while len(tail) < size:
        with path.open("rb") as file:
            file.seek(max(0, size - reach))
            tail = file.read(reach)
        for line in reversed(tail.split(b"\n")):
            with suppress(ValueError):
                found = datetime.strptime(line[: STAMP - 1].decode(), "%Y-%m-%dT%H:%M:%S.%f%z")
                return found, not tail.endswith(b"\n")
        reach *= 16  # the last line is long
    return datetime.min.replace(tzinfo=UTC), bool(tail)


def last_line(path: Path) -> str:
    """Return the last line of a log, without its time."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        lines = file.read().decode(errors="replace").splitlines() or [""]
    return lines[-1][STAMP:]


def lines_since(path: Path, mark: int) -> Iterator[str]:
    """Yield the lines of a log from an offset, without their times."""
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(mark)
        for line in file:
            yield line[STAMP:].rstrip("\n")


def lines_before(path: Path, mark: int) -> int:
    """Return the number of lines before an offset of a log."""
    with path.open("rb") as file:
        count = 0
        while mark > 0 and (piece := file.read(min(mark, 1 << 20))):
            count += piece.count(b"\n")
            mark -= len(piece)
    return count
