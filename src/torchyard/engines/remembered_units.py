"""Forecast the memory of running compilers from earlier builds of their units."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torchyard.host.process_tree import LeafProcess
from torchyard.model.unit_usage import UnitUsage, join_units
from torchyard.toolchain.running_unit import RunningUnit, UnitFinder


class ExpectedUnits(NamedTuple):
    """The peak bytes of compilers, by pid, and the mean of all units."""

    peaks: Mapping[int, int]
    mean: float


class RememberedUnits:
    """The units of all started jobs; of two with the same name, the larger one counts."""

    def __init__(self, finder: UnitFinder | None = None) -> None:
        self._finder = finder or UnitFinder()
        self._units: Mapping[str, UnitUsage] = {}
        self._unknown = 0
        self._mean = 0.0
        self.largest = 0

    def __bool__(self) -> bool:
        return bool(self._units)

    def add(self, units: Mapping[str, UnitUsage]) -> None:
        """Add the units of a job, safely for readers in other threads."""
        if not units:
            return
        self._units = join_units(self._units, units)
        peaks = sorted(used.memory for used in self._units.values())
        self.largest = peaks[-1]
        self._mean = sum(peaks) / len(peaks)
        # An unknown unit is assumed to be larger than nine of ten others.
        self._unknown = peaks[len(peaks) * 9 // 10]

    def expect(self, workers: Sequence[LeafProcess]) -> ExpectedUnits | None:
        """Return the forecast for running compilers, or None if no unit is remembered.

        The largest process of a unit counts for all: a cache's client only waits for the compiler.
        Processes that make no unit are omitted.
        """
        if not self:
            return None
        units = self._finder.find(workers)
        largest: dict[RunningUnit, LeafProcess] = {}
        for worker in sorted(workers, key=lambda worker: -worker.memory):
            if worker.pid in units:
                largest.setdefault(units[worker.pid]._replace(command=0), worker)
        peaks = {worker.pid: self._of(unit) for unit, worker in largest.items()}
        return ExpectedUnits(peaks, self._mean)

    def _of(self, unit: RunningUnit) -> int:
        used = self._units.get(unit.output)
        return used.memory if used else self._unknown
