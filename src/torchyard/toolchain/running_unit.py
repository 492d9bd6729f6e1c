"""Which file a running compiler or linker makes, read from its command line."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from torchyard.host.process_tree import LeafProcess
from torchyard.toolchain.ninja import is_compiled

_LONGEST = 1 << 21
"""Bytes of a command line that are read: Linux allows no longer ones by default."""

_ASSEMBLER = b"as"
"""It runs after the compiler of the same unit, and takes little."""


class RunningUnit(NamedTuple):
    """The file that a command makes, as it names it, and the command's process.

    `step` is the topmost process of the step that it belongs to: two jobs may make files of the
    same name.
    """

    step: int
    output: str
    command: int


class UnitFinder:
    """Finds the units of compilers, and remembers them while they run."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._found: dict[tuple[int, float], RunningUnit] = {}

    def find(self, workers: Iterable[LeafProcess]) -> dict[int, RunningUnit]:
        """Return the units of processes, by pid. Many make none, such as those of scripts.

        A compiler is started by its driver, and that by others; the topmost that names a file is
        ninja's command.
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
        """Return the command line of a process; one empty word if it has ended."""
        try:
            with (self._proc / str(pid) / "cmdline").open("rb") as file:
                return file.read(_LONGEST).split(b"\0")
        except OSError:
            return [b""]
