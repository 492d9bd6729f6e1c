"""How much memory compilers will take, learnt from those seen so far."""

from collections import deque
from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple, Self

from torchyard.host.process_tree import LeafProcess

# What a compiler may take as long as none has shown better.
DEFAULT_PEAK = 2 * 10**9

# So many of the last ones count; the next directory's sources are of another kind.
_WINDOW = 64
# What was seen fewer times, all in all, teaches nothing yet.
_ENOUGH = 8
# Who has not worked in so many samples, one after the other, is waiting.
_IDLE = 8


class Growth(NamedTuple):
    """Bytes that are still to come, and their variance; sums of independent ones add up."""

    mean: float = 0
    variance: float = 0

    @property
    def likely(self) -> float:
        """What is exceeded seldom, rather than every other time."""
        return self.mean + sqrt(self.variance)

    def plus(self, other: Self) -> "Growth":
        return Growth(self.mean + other.mean, self.variance + other.variance)


class _Life(NamedTuple):
    """A worker's highest memory so far, and in how many samples it had worked.

    The samples are its weight: of the processes of one command the assembler lives shortly
    and the compiler long, and it is the compilers that are there at most moments.
    """

    peak: int = 0
    samples: int = 0
    cpu: float = -1
    idle: int = 0


class Peaks:
    """The memory of workers over time."""

    def __init__(self) -> None:
        self._running: dict[tuple[int, float], _Life] = {}
        self._ended: deque[_Life] = deque(maxlen=_WINDOW)

    def observe(self, workers: Iterable[LeafProcess]) -> None:
        """Remember one sample; who is no longer in it has ended."""
        now: dict[tuple[int, float], _Life] = {}
        for worker in workers:
            key = worker.pid, worker.started
            life = self._running.pop(key, _Life())
            peak, worked = max(life.peak, worker.memory), worker.cpu != life.cpu
            idle = 0 if worked or worker.stopped else life.idle + 1
            now[key] = _Life(peak, life.samples + worked, worker.cpu, idle)
        self._ended.extend(self._running.values())
        self._running = now

    def idles(self, worker: LeafProcess) -> bool:
        """Tell whether it has only waited for a while: for its input, or a paused worker."""
        return self._running[worker.pid, worker.started].idle >= _IDLE

    def of(self, worker: LeafProcess) -> Growth:
        """Tell how much this one will still grow: as those did that came at least as far."""
        if self.idles(worker):
            return Growth()
        memory = worker.memory
        # One that is a little larger than all others is of their kind, not of a new one.
        alike = [life for life in self._ended if life.peak >= 0.9 * memory]
        if not alike:
            return Growth(max(DEFAULT_PEAK - memory, memory / 4))
        return _spread([(max(0, life.peak - memory), life.samples) for life in alike])

    def of_next(self) -> Growth:
        """Tell how much a worker will take that has not started yet."""
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
