"""Measure the memory of each unit while a step compiles."""

import os
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

from torchyard.errors import TorchyardError
from torchyard.host.process_tree import LeafProcess, find_leaf_processes, peak_memory
from torchyard.host.untrusted_tree import UntrustedTree
from torchyard.model.unit_usage import (
    UNITS_FILE,
    UnitsDocument,
    UnitUsage,
    decode_units,
    join_units,
)
from torchyard.toolchain.running_unit import RunningUnit, UnitFinder

_TICK = 0.1
"""Seconds between two samples of known compilers' memory; later growth is missed."""
_SEARCH = 5
"""Samples between two searches for new compilers, which read all processes of the machine."""


class UnitMeter:
    """Measures the memory of units compiled by child processes, while it is entered.

    The kernel keeps the peak of a process until it ends, so few samples are enough; units that take
    less than half a second are often missed.
    """

    def __init__(self) -> None:
        self.folders: dict[str, dict[str, UnitUsage]] = {}
        """The units by the working directory of their commands, as these see it."""
        self._looks = self._seen = 0
        self._finder = UnitFinder()
        self._workers: dict[int, LeafProcess] = {}
        self._units: dict[int, RunningUnit] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def units(self) -> dict[str, UnitUsage]:
        """All units, by their output files."""
        found: dict[str, UnitUsage] = {}
        for units in self.folders.values():
            found = join_units(found, units)
        return found

    @property
    def concurrency(self) -> float:
        """The mean number of units compiled at once, while there were any."""
        return self._seen / self._looks if self._looks else 1.0

    def _watch(self) -> None:
        looks = 0
        while not self._ended.wait(_TICK):
            if looks % _SEARCH == 0:
                self._search()
            self._look()
            looks += 1

    def _search(self) -> None:
        self._workers = {worker.pid: worker for worker in find_leaf_processes([os.getpid()])}
        self._units = self._finder.find(self._workers.values())

    def _look(self) -> None:
        """Sample the memory of units, summed over the processes of each."""
        memory: Counter[RunningUnit] = Counter()
        cpu: dict[RunningUnit, float] = {}
        for pid, unit in self._units.items():
            memory[unit] += peak_memory(pid)
            cpu[unit] = cpu.get(unit, 0.0) + self._workers[pid].cpu
        self._looks += bool(memory)
        self._seen += len(memory)
        for unit, size in memory.items():
            with suppress(OSError):  # it has ended
                folder = os.readlink(f"/proc/{unit.command}/cwd")  # noqa: PTH115 - as it is there
                used = UnitUsage(memory=size, cpu=round(cpu[unit], 2))
                units = self.folders.setdefault(folder, {})
                units[unit.output] = used.joined(units.get(unit.output, used))


def leave_units(meter: UnitMeter, job: Path, seen_as: str) -> None:
    """Write the memory of units beside ninja's logs in the directories of a job.

    `seen_as` is the steps' path of the directory `job`. Units compiled elsewhere are skipped, and
    so are files that can't be written.
    """
    for folder, units in meter.folders.items():
        if not f"{folder}/".startswith(f"{seen_as}/"):
            continue
        path = f"{folder[len(seen_as) + 1 :]}/{UNITS_FILE}".lstrip("/")
        with suppress(TorchyardError, OSError), UntrustedTree(job) as tree:
            earlier = read_units_file(tree, path)
            data = msgspec.json.encode(UnitsDocument(units=earlier | units))
            with tree.create_file(path) as file:
                file.write(data)


def read_units_file(tree: UntrustedTree, path: str) -> dict[str, UnitUsage]:
    """Return the units of an earlier step; empty if there is no readable file."""
    with suppress(TorchyardError, OSError), tree.open_file(path) as file:
        return decode_units(file.read(1 << 26))
    return {}
