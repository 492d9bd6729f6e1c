"""Forecast the memory of compilers from those observed so far."""

from collections import deque
from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple, Self

from torchyard.host.process_tree import LeafProcess

# The assumed peak of a compiler before any observation.
DEFAULT_PEAK = 2 * 10**9

# Number of recent processes in a forecast; those of other directories compile other sources.
_WINDOW = 64
# Fewer samples give no forecast.
_ENOUGH = 8
# Consecutive samples without CPU time after which a process is waiting.
_IDLE = 8


class Growth(NamedTuple):
    """Expected further bytes, and their variance; independent ones can be added."""

    mean: float = 0
    variance: float = 0

    @property
    def likely(self) -> float:
        """The mean plus one standard deviation, which is seldom exceeded."""
        return self.mean + sqrt(self.variance)

    def plus(self, other: Self) -> "Growth":
        return Growth(self.mean + other.mean, self.variance + other.variance)


class _Life(NamedTuple):
    """A process's peak memory so far, and the number of samples in which it used CPU time.

    The samples are its weight: compilers run longer than assemblers.
    """

    peak: int = 0
    samples: int = 0
    cpu: float = -1
    idle: int = 0


class Peaks:
    """The memory of processes over time."""

    def __init__(self) -> None:
        self._running: dict[tuple[int, float], _Life] = {}
        self._ended: deque[_Life] = deque(maxlen=_WINDOW)

    def observe(self, workers: Iterable[LeafProcess]) -> None:
        """Record a sample; processes missing from it have ended."""
        now: dict[tuple[int, float], _Life] = {}
        for worker in workers:
            key = worker.key
            life = self._running.pop(key, _Life())
            peak, worked = max(life.peak, worker.memory), worker.cpu != life.cpu
            idle = 0 if worked or worker.stopped else life.idle + 1
            now[key] = _Life(peak, life.samples + worked, worker.cpu, idle)
        self._ended.extend(self._running.values())
        self._running = now

    def idles(self, worker: LeafProcess) -> bool:
        """Return whether a process waits for input or for a paused process."""
        return self._running[worker.key].idle >= _IDLE

    def largest(self, worker: LeafProcess) -> int:
        """Return the largest observed memory of a process; a process that ends has none."""
        return self._running[worker.key].peak

    def of(self, worker: LeafProcess) -> Growth:
        """Return how much a process will still grow, from processes that grew at least as large."""
        if self.idles(worker):
            return Growth()
        memory = worker.memory
        # A slightly larger process than all others still counts as their kind.
        alike = [life for life in self._ended if life.peak >= 0.9 * memory]
        if not alike:
            return Growth(max(DEFAULT_PEAK - memory, memory / 4))
        return _spread([(max(0, life.peak - memory), life.samples) for life in alike])

    def of_next(self) -> Growth:
        """Return the expected memory of a process that has yet to start."""
        if sum(life.samples for life in self._ended) < _ENOUGH:
            return Growth(DEFAULT_PEAK)
        running = [
            (life.peak + self.of(LeafProcess(pid, started, life.peak, 0)).mean, life.samples)
            for (pid, started), life in self._running.items()
        ]
        return _spread([*((life.peak, life.samples) for life in self._ended), *running])


def _spread(weighted: list[tuple[float, int]]) -> Growth:
    total = sum(weight for _, weight in weighted)
    mean = sum(value * weight for value, weight in weighted) / total
    variance = sum((value - mean) ** 2 * weight for value, weight in weighted) / total
    return Growth(mean, variance)
