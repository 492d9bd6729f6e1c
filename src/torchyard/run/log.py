"""The log of a job: every line with the time at which it came."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

STAMP = len("2026-11-15T05:16:14.123Z ")
"""How many letters of each line are its time."""


class Log:
    """A file that lines are added to. Times go on steadily even if the clock jumps."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", errors="replace", buffering=1)
        self._wall = datetime.now(UTC)
        self._began = time.monotonic()

    def add(self, line: str) -> None:
        now = self._wall + timedelta(seconds=time.monotonic() - self._began)
        self._file.write(f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z {line}\n")

    def mark(self) -> int:
        """The place in the file that the next line goes to."""
        return self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def lines_since(path: Path, mark: int) -> Iterator[str]:
    """The lines of a log from a place on, without their times."""
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(mark)
        for line in file:
            yield line[STAMP:].rstrip("\n")


def lines_before(path: Path, mark: int) -> int:
    """How many lines a log has before a place."""
    with path.open("rb") as file:
        count = 0
        while mark > 0 and (piece := file.read(min(mark, 1 << 20))):
            count += piece.count(b"\n")
            mark -= len(piece)
    return count
