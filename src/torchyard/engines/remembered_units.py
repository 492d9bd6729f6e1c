"""What running compilers will take, from what their units took in earlier builds."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torchyard.host.process_tree import LeafProcess
from torchyard.model.unit_usage import UnitUsage, join_units
from torchyard.toolchain.running_unit import RunningUnit, UnitFinder


class ExpectedUnits(NamedTuple):
    """The bytes that compilers will have at most, by pid, and the mean of all units."""

    peaks: Mapping[int, int]
    mean: float


class RememberedUnits:
    """The units of all jobs that have started; of two with the same name, the larger counts."""

    def __init__(self, finder: UnitFinder | None = None) -> None:
        self._finder = finder or UnitFinder()
        self._units: Mapping[str, UnitUsage] = {}
        self._unknown = 0
        self._mean = 0.0
        self.largest = 0

    def __bool__(self) -> bool:
        return bool(self._units)

    def add(self, units: Mapping[str, UnitUsage]) -> None:
        """Add the units of a job; another thread may be reading meanwhile."""
        if not units:
            return
        self._units = join_units(self._units, units)
        peaks = sorted(used.memory for used in self._units.values())
        self.largest = peaks[-1]
        self._mean = sum(peaks) / len(peaks)
        # One that is not known is taken to be larger than nine of ten others.
        self._unknown = peaks[len(peaks) * 9 // 10]

    def expect(self, workers: Sequence[LeafProcess]) -> ExpectedUnits | None:
        """Return what running compilers will take; None if nothing is remembered.

        Of a unit's processes, such as a compiler and the client of a cache that waits for it, the
        largest one counts for all. Processes that make no unit are left out.
        """
        if not self:
            return None
        units = self._finder.find(workers)
        first: dict[RunningUnit, LeafProcess] = {}
        for worker in sorted(workers, key=lambda worker: -worker.memory):
            if worker.pid in units:
                first.setdefault(units[worker.pid]._replace(command=0), worker)
        return ExpectedUnits({one.pid: self._of(unit) for unit, one in first.items()}, self._mean)

    def _of(self, unit: RunningUnit) -> int:
        used = self._units.get(unit.output)
        return used.memory if used else self._unknown
