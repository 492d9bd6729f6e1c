"""The memory guard: slows down a build that would run out of memory."""

import atexit
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from torchyard.engines.memory_forecast import DEFAULT_PEAK
from torchyard.engines.remembered_units import RememberedUnits
from torchyard.engines.throttle import SAME, Pace
from torchyard.host.jobserver import Jobserver
from torchyard.host.memory import Memory, read_memory
from torchyard.host.process_tree import LeafProcess, find_leaf_processes, pause, resume
from torchyard.model.quantity import show_count

# Seconds between two samples: when memory may run short, and when there is plenty.
_SHORT, _LONG = 0.25, 1.0
# The same while paused compilers can continue as soon as another one ends.
_SOON = 0.1


class SlotChange(NamedTuple):
    """A change of the allowed slots, or of paused processes."""

    allowed: int
    paused: int
    available: int
    reason: str


class Guard:
    """Limits the slots in use and the running compilers to the available memory.

    `roots` returns the processes of running jobs; `on_change` is called in the guard's thread. Stop
    the guard before ending jobs by a signal: a paused process handles none until it is resumed.
    """

    def __init__(
        self,
        slots: Jobserver,
        roots: Callable[[], Iterable[int]],
        on_change: Callable[[SlotChange], None],
        memory: Callable[[], Memory] = read_memory,
    ) -> None:
        self._slots = slots
        self._roots = roots
        self._on_change = on_change
        self._memory = memory
        self.units = RememberedUnits()
        """The memory of compilers in earlier builds; may grow at any time."""
        self._paused: dict[int, LeafProcess] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Withhold slots that exceed the memory before the first job starts; then watch."""
        memory = self._memory()
        pace = Pace(self._slots.count, memory)
        self._slots.withhold(self._slots.count - pace.allowed)
        if pace.allowed < self._slots.count:
            self._report(pace.allowed, memory, "not enough memory is free for all slots")
        self._thread = threading.Thread(target=self._watch, args=(pace,), daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """Stop watching, resume all paused processes, and give back all slots."""
        self._ended.set()
        if self._thread:
            self._thread.join()
        atexit.unregister(self.stop)

    def _watch(self, pace: Pace) -> None:
        wait = _SHORT
        try:
            while not self._ended.wait(wait):
                wait = self._sample(pace)
        finally:
            for worker in self._paused.values():
                resume(worker)
            self._slots.withhold(0)

    def _sample(self, pace: Pace) -> float:
        """Take a sample and act on it; return the seconds until the next."""
        memory, workers = self._memory(), find_leaf_processes(self._roots())
        if lost := self._slots.recover(len(workers)):
            found = show_count(lost, "slot")
            self._report(
                pace.allowed, memory, f"{found} of a build that was killed can be used again"
            )
        self._apply(pace, memory, workers)
        withhold = self._slots.count - pace.allowed
        if withhold > self._slots.withheld:  # slots are regained by waiting at the fifo
            self._slots.withhold(withhold, _SOON if self.units else _SHORT)
            return 0
        plenty = memory.available > self._slots.count * (self.units.largest or DEFAULT_PEAK)
        if self._paused and self.units:
            return _SOON
        return _LONG if plenty and not self._paused else _SHORT

    def _apply(self, pace: Pace, memory: Memory, workers: list[LeafProcess]) -> None:
        """Decide on a sample, and apply the decision."""
        decision = pace.decide(memory, workers, self._paused, self.units.expect(workers))
        for worker in decision.pause:
            pause(worker)
            self._paused[worker.pid] = worker
        # Include processes that no longer belong to a job.
        gone = self._paused.keys() - {worker.pid for worker in workers}
        for pid in [*gone, *(worker.pid for worker in decision.resume)]:
            resume(self._paused.pop(pid))
        self._slots.withhold(self._slots.count - decision.allowed)
        if decision.reason != SAME:
            self._report(decision.allowed, memory, decision.reason)

    def _report(self, allowed: int, memory: Memory, reason: str) -> None:
        self._on_change(SlotChange(allowed, len(self._paused), memory.available, reason))
