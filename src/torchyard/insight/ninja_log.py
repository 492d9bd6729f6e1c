"""Reads ninja's log: when each command of a build began and ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError

_HEADER = "# ninja log v"
_FIELDS = 5


class LogEntry(NamedTuple):
    """A command: when it began and ended, in seconds since ninja started, and its outputs."""

    run: int
    begin: float
    end: float
    outputs: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def read_ninja_log(path: Path) -> list[LogEntry]:
    """Return the last run of each command, in the order in which they ended.

    A build that was interrupted has several runs of ninja, each with its own clock.
    """
    latest: dict[str, tuple[int, int, int, str]] = {}
    run = before = 0
    for begin, end, _, output, command in _rows(path):
        run += end < before
        before = end
        latest.pop(output, None)
        latest[output] = run, begin, end, command
    commands: dict[tuple[int, int, int, str], list[str]] = {}
    for output, key in latest.items():
        commands.setdefault(key, []).append(output)
    return [
        LogEntry(run, begin / 1000, end / 1000, tuple(outputs))
        for (run, begin, end, _), outputs in commands.items()
    ]


class MadeOnce(NamedTuple):
    """One of the times that a file was made: when, in nanoseconds, and a digest of its command.

    The time is 0 in logs of ninja before 1.11.
    """

    time: int
    command: str


def read_history(path: Path) -> dict[str, list[MadeOnce]]:
    """Return how often each file was made, as far as the log goes back."""
    found: dict[str, list[MadeOnce]] = {}
    for _, _, time, output, command in _rows(path):
        found.setdefault(output, []).append(MadeOnce(time, command))
    return found


def _rows(path: Path) -> Iterator[tuple[int, int, int, str, str]]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines or not lines[0].startswith(_HEADER):
        msg = f"`{path}` is no log of ninja"
        raise BuildError(msg, hint="name the directory in which ninja built")
    for line in lines:
        fields = line.split("\t")
        if len(fields) == _FIELDS:  # else it was cut off, as ninja was killed
            yield int(fields[0]), int(fields[1]), int(fields[2]), fields[3], fields[4]
