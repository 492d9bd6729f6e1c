"""Decide how many slots to allow and which compilers to pause, from numbers alone.

Slots in use can't be revoked, and a paused compiler keeps its memory. So new work is admitted only
if its predicted peak fits, and compilers are paused early enough for the oldest one to finish; the
memory that it frees lets the next one continue.

If earlier builds show the memory of each compiler, nothing is predicted: a compiler that does not
fit is paused as soon as it is seen, while it is still small.
"""

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

from torchyard.engines.memory_forecast import DEFAULT_PEAK, Growth, Peaks
from torchyard.engines.remembered_units import ExpectedUnits
from torchyard.host.memory import Memory
from torchyard.host.process_tree import LeafProcess
from torchyard.model.quantity import show_count, show_size


class Candidate(NamedTuple):
    """A compiler, and the bytes it will still need."""

    worker: LeafProcess
    growth: int

    @property
    def peak(self) -> int:
        return self.worker.memory + self.growth


def next_compilers(
    room: int, running: Collection[Candidate], waiting: Sequence[Candidate]
) -> list[Candidate]:
    """Return the waiting units that may run now: all that fit into `room`, the largest first.

    One always runs, however little memory is left.
    """
    left = room - sum(unit.growth for unit in running)
    started: list[Candidate] = []
    for unit in sorted(waiting, key=lambda unit: -unit.peak):
        if unit.growth <= left:
            left -= unit.growth
            started.append(unit)
    return started if started or running else list(waiting[:1])


# Memory to keep free for other programs and forecast errors.
_LEAST_RESERVE, _MOST_RESERVE = 128 * 10**6, 10**9
# Above this percentage of time spent waiting for memory, nothing is added.
_HIGH_PRESSURE = 20

# Consecutive samples that must show a shortage before slots are withheld: a compiler frees its
# memory a moment after its successor has started.
_CONVINCED = 3

# Waiting compilers besides those that fit on average: the largest runs first, others fill gaps.
# They must already exist: ninja looks for free slots only when one of its commands ends.
_WAITING = 2

# A compiler above this multiple of its remembered peak makes all remembered peaks doubtful.
_SURPRISE = 1.1

SAME = "as before"


class Decision(NamedTuple):
    """Slots to allow, processes to pause and to resume, and why."""

    allowed: int
    pause: Sequence[LeafProcess]
    resume: Sequence[LeafProcess]
    reason: str


class _Known:
    """The processes of a sample; those that make a unit have a known peak."""

    def __init__(
        self, workers: Sequence[LeafProcess], expected: ExpectedUnits, peaks: Peaks
    ) -> None:
        pairs = [(w, expected.peaks[w.pid]) for w in workers if w.pid in expected.peaks]
        self.compilers = [Candidate(w, max(0, most - peaks.largest(w))) for w, most in pairs]
        self.is_exceeded = any(worker.memory > _SURPRISE * most for worker, most in pairs)
        self.memory = sum(worker.memory for worker, _ in pairs)
        self.mean = expected.mean


class Pace:
    """Turns samples of memory and processes into decisions; takes no samples itself."""

    def __init__(self, count: int, memory: Memory) -> None:
        self.count = count
        self.allowed = max(1, min(count, memory.available // DEFAULT_PEAK))
        self._peaks = Peaks()
        self._available = memory.available
        self._short = 0
        self._admitted: set[tuple[int, float]] = set()
        self._has_waited = False

    def decide(
        self,
        memory: Memory,
        workers: Sequence[LeafProcess],
        ours: Collection[int],
        expected: ExpectedUnits | None = None,
    ) -> Decision:
        """Decide on a sample; processes come oldest first, `ours` are those paused by us.

        `expected` is the forecast for compilers, if there is one.
        """
        self._peaks.observe(workers)
        room = memory.available - max(_LEAST_RESERVE, min(_MOST_RESERVE, memory.total // 16))
        soon = room - max(0, self._available - memory.available)
        self._available = memory.available
        if expected is not None:
            return self._decide_known(
                memory, room, soon, _Known(workers, expected, self._peaks), ours
            )
        self._admitted = {worker.key for worker in workers}
        # Only working processes count: others may wait for a paused one.
        working = [worker for worker in workers if not self._peaks.idles(worker)]
        pause, resume = self._choose_paused(room, soon, working, ours)
        if pause:
            self._short = _CONVINCED
        growths = [self._peaks.of(worker) for worker in workers]
        before, self.allowed = self.allowed, self._admit(memory, room, growths)
        return Decision(self.allowed, pause, resume, self._reason(before, pause, resume))

    def _decide_known(
        self, memory: Memory, room: int, soon: int, known: _Known, ours: Collection[int]
    ) -> Decision:
        """Decide on compilers with known peaks; leave other processes alone."""
        running: list[Candidate] = []
        waiting: list[Candidate] = []
        for unit in known.compilers:
            is_waiting = unit.worker.pid in ours or unit.worker.key not in self._admitted
            (waiting if is_waiting else running).append(unit)
        # The oldest must finish even if it or other programs take more than before.
        if running and (soon if known.is_exceeded else room) < running[0].growth:
            running, waiting = running[:1], [*running[1:], *waiting]
        started = next_compilers(room, running, waiting)
        left = [unit for unit in waiting if unit not in started]
        self._admitted = {unit.worker.key for unit in known.compilers} - {
            unit.worker.key for unit in left
        }
        fits = max(0, round((room + known.memory) / max(1, known.mean))) + _WAITING
        is_pressed = (memory.pressure or 0) > _HIGH_PRESSURE
        self.allowed = min(self.count, fits, self.allowed if is_pressed else fits)
        pause = [unit.worker for unit in left if not unit.worker.stopped]
        resume = [unit.worker for unit in started if unit.worker.pid in ours]
        return Decision(self.allowed, pause, resume, self._reason_known(left))

    def _reason_known(self, left: Sequence[Candidate]) -> str:
        if not left or self._has_waited:
            return SAME
        self._has_waited = True
        each = show_size(left[0].peak)
        free = show_size(self._available)
        return f"compilers wait for memory, as in earlier builds: {free} available, {each} needed"

    def _admit(self, memory: Memory, room: int, growths: Sequence[Growth]) -> int:
        """Return the slots that the memory allows, at most one more than now.

        Between too little memory for running processes and enough for another one lies the
        reserve, in which nothing changes.
        """
        expected = list(accumulate(growths, Growth.plus, initial=Growth()))
        self._short = self._short + 1 if expected[-1].likely > memory.available else 0
        if self._short >= _CONVINCED:
            fits = sum(growth.likely <= memory.available for growth in expected[1:])
            return max(1, min(self.allowed, fits))
        if self._short:
            return self.allowed
        if self.allowed == self.count or (memory.pressure or 0) > _HIGH_PRESSURE:
            return self.allowed
        another = self._peaks.of_next()
        fits, growth = len(growths), expected[-1].plus(another)
        while fits <= self.allowed and growth.likely <= room:
            fits, growth = fits + 1, growth.plus(another)
        return self.allowed + (fits > self.allowed)

    def _choose_paused(
        self, room: int, soon: int, working: Sequence[LeafProcess], ours: Collection[int]
    ) -> tuple[Sequence[LeafProcess], Sequence[LeafProcess]]:
        """Return the processes to pause and to resume; older ones run first, the oldest always."""
        growths = [self._peaks.of(worker).mean for worker in working]
        fits = max(1, sum(total <= room for total in accumulate(growths)))
        pause: Sequence[LeafProcess] = []
        if growths and soon < growths[0]:  # soon not even the oldest could finish
            pause = [worker for worker in working[fits:] if not worker.stopped]
            fits = 1
        paused = [worker for worker in working[:fits] if worker.stopped and worker.pid in ours]
        return pause, paused[:1]

    def _reason(
        self, before: int, pause: Sequence[LeafProcess], resume: Sequence[LeafProcess]
    ) -> str:
        each = show_size(round(self._peaks.of_next().mean))
        left = f"{show_size(self._available)} available, a compiler takes about {each}"
        if pause:
            return f"memory is short, {show_count(len(pause), 'compiler')} paused: {left}"
        if resume:
            return f"a paused compiler goes on: {left}"
        if self.allowed < before:
            return f"fewer slots, for want of memory: {left}"
        if self.allowed > before:
            return f"there is memory for another slot: {left}"
        return SAME
