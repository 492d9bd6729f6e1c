"""Reads ninja's log: when each command of a build began and ended."""

from pathlib import Path
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.toolchain.ninja import log_rows

_HEADER = b"# ninja log v"


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


def _refuse_other_files(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            msg = f"`{path}` is no log of ninja"
            raise BuildError(msg, hint="name the directory in which ninja built")
