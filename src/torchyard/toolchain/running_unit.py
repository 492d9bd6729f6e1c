"""The output files of running compilers and linkers, from their command lines."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from torchyard.host.process_tree import LeafProcess
from torchyard.toolchain.ninja import is_compiled

_LONGEST = 1 << 21
"""Maximum bytes of a command line to read, as long as Linux allows by default."""

_ASSEMBLER = b"as"
"""Runs after the compiler of the same unit, and needs little memory."""


class RunningUnit(NamedTuple):
    """The output file of a command, as it names it, and the command's process.

    `step` is the topmost process of its step: two jobs may make files of the
    same name.
    """

    step: int
    output: str
    command: int


class UnitFinder:
    """Finds the units of compilers, and caches them while they run."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._found: dict[tuple[int, float], RunningUnit] = {}

    def find(self, workers: Iterable[LeafProcess]) -> dict[int, RunningUnit]:
        """Return the units of processes, by pid. Many processes, such as scripts, have none.

        A driver starts a compiler, and other programs start the driver; ninja's command is the
        topmost process that names a file.
        """
        before, self._found = self._found, {}
        for worker in workers:
            if unit := before.get(worker.key) or self._read(worker):
                self._found[worker.key] = unit
        return {pid: unit for (pid, _), unit in self._found.items()}

    def _read(self, worker: LeafProcess) -> RunningUnit | None:
        if self._words(worker.pid)[0].rpartition(b"/")[2] == _ASSEMBLER:
            return None
        line = (*reversed(worker.above), worker.pid)
        for pid in line:
            words = self._words(pid)
            if b"-o" in words[:-1]:
                output = words[words.index(b"-o") + 1].decode(errors="replace")
                if is_compiled(output):
                    return RunningUnit(line[0], output, pid)
        return None

    def _words(self, pid: int) -> list[bytes]:
        """Return the command line of a process; an empty word if it has ended."""
        try:
            with (self._proc / str(pid) / "cmdline").open("rb") as file:
                return file.read(_LONGEST).split(b"\0")
        except OSError:
            return [b""]
