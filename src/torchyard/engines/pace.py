"""How many slots may be in use, and which compilers must wait: decided from numbers alone.

Slots in use can't be called back, and the memory of a paused compiler is not given back. So new
work is admitted only where its predicted peak fits, and pausing comes so early that the
oldest compiler still has room to finish; when it ends, its memory lets the next one go on.
"""

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

from torchyard.engines.peaks import DEFAULT_PEAK, Growth, Peaks
from torchyard.host.memory import Memory
from torchyard.host.workers import Worker
from torchyard.model.quantity import show_count, show_size

# Memory that nothing is planned into, for everybody else and for what is mispredicted.
_LEAST_RESERVE, _MOST_RESERVE = 128 * 10**6, 10**9
# Per cent of time spent waiting for memory above which nothing is added.
_HIGH_PRESSURE = 20
# Samples without any progress after which a paused worker may be what the others wait for.
_STUCK = 8


class Decision(NamedTuple):
    """What should be now: slots allowed, workers to pause and to resume, and why."""

    allowed: int
    pause: Sequence[Worker]
    resume: Sequence[Worker]
    reason: str


class Pace:
    """Turns samples of memory and workers into decisions; it remembers, but never looks itself."""

    def __init__(self, count: int, memory: Memory) -> None:
        self.count = count
        self.allowed = max(1, min(count, memory.available // DEFAULT_PEAK))
        self._peaks = Peaks()
        self._available = memory.available
        self._cpu = 0.0
        self._still = 0

    def decide(self, memory: Memory, workers: Sequence[Worker], ours: Collection[int]) -> Decision:
        """Decide on one sample; workers come oldest first, `ours` are those we have paused."""
        self._peaks.observe(workers)
        growths = [self._peaks.of(worker) for worker in workers]
        room = memory.available - max(_LEAST_RESERVE, min(_MOST_RESERVE, memory.total // 16))
        before, self.allowed = self.allowed, self._admit(memory, room, growths)
        soon = room - max(0, self._available - memory.available)
        self._available = memory.available
        running = [worker for worker in workers if not worker.stopped]
        paused = [worker for worker in workers if worker.stopped and worker.pid in ours]
        # The older a worker, the sooner it may run, and the oldest always may.
        fits = max(1, sum(total <= room for total in accumulate(growth.mean for growth in growths)))
        pause: list[Worker] = []
        if growths and soon < growths[0].mean:  # soon not even the oldest could finish
            pause = [worker for worker in workers[fits:] if not worker.stopped]
            fits = 1
        if self._is_stuck(running):
            fits = len(workers)
        resume = [worker for worker in workers[:fits] if worker in paused][:1]
        return Decision(self.allowed, pause, resume, self._reason(before, pause, resume))

    def _admit(self, memory: Memory, room: int, growths: Sequence[Growth]) -> int:
        """Count the slots for which there is memory; add one at a time, to see what it does.

        Between too little for those that run and enough for another lies the reserve, where
        nothing changes.
        """
        expected = list(accumulate(growths, Growth.plus, initial=Growth()))
        if expected[-1].likely > memory.available:
            fits = sum(growth.likely <= memory.available for growth in expected[1:])
            return max(1, min(self.allowed, fits))
        if self.allowed == self.count or (memory.pressure or 0) > _HIGH_PRESSURE:
            return self.allowed
        another = self._peaks.of_next()
        fits, growth = len(growths), expected[-1].plus(another)
        while fits <= self.allowed and growth.likely <= room:
            fits, growth = fits + 1, growth.plus(another)
        return self.allowed + (fits > self.allowed)

    def _is_stuck(self, running: Sequence[Worker]) -> bool:
        """Tell whether none runs, or all have only waited for a while, perhaps for a paused one."""
        cpu = sum(worker.cpu for worker in running)
        self._still = self._still + 1 if cpu == self._cpu else 0
        self._cpu = cpu
        return not running or self._still >= _STUCK

    def _reason(self, before: int, pause: Sequence[Worker], resume: Sequence[Worker]) -> str:
        each = show_size(round(self._peaks.of_next().mean))
        left = f"{show_size(self._available)} available, a compiler takes about {each}"
        if pause:
            return f"memory is short, {show_count(len(pause), 'compiler')} paused: {left}"
        if resume:
            return f"there is memory for a paused compiler again: {left}"
        if self.allowed < before:
            return f"fewer slots, for want of memory: {left}"
        if self.allowed > before:
            return f"there is memory for another slot: {left}"
        return "as before"
