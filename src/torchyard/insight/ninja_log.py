"""Read ninja's log: when each command of a build began and ended."""

from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.toolchain.ninja import log_rows

_HEADER = b"# ninja log v"


class LogEntry(NamedTuple):
    """A command: its begin and end in seconds since ninja's start, and its outputs."""

    run: int
    begin: float
    end: float
    outputs: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return self.end - self.begin


def read_ninja_log(path: Path) -> list[LogEntry]:
    """Return the last run of each command, in the order of their ends.

    An interrupted build has several runs of ninja, each with its own clock.
    """
    _refuse_other_files(path)
    latest: dict[str, tuple[int, int, int, str]] = {}
    run = before = 0
    for row in log_rows(path):
        begin, end = int(row.begin), int(row.end)
        run += end < before
        before = end
        latest.pop(row.output, None)
        latest[row.output] = run, begin, end, row.command
    commands: dict[tuple[int, int, int, str], list[str]] = {}
    for output, key in latest.items():
        commands.setdefault(key, []).append(output)
    return [
        LogEntry(run, begin / 1000, end / 1000, tuple(outputs))
        for (run, begin, end, _), outputs in commands.items()
    ]


class MadeOnce(NamedTuple):
    """A past run that made a file: its time in nanoseconds, and a digest of its command.

    The time is 0 in logs of ninja before 1.11.
    """

    time: int
    command: str


def read_history(path: Path) -> dict[str, list[MadeOnce]]:
    """Return all logged runs that made each file."""
    _refuse_other_files(path)
    found: dict[str, list[MadeOnce]] = {}
    for row in log_rows(path):
        found.setdefault(row.output, []).append(MadeOnce(int(row.mtime), row.command))
    return found


def _refuse_other_files(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            msg = f"`{path}` is no log of ninja"
            raise BuildError(msg, hint="name the directory in which ninja built")
