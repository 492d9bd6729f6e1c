"""The memory guard: a build that needs more memory than there is slows down instead of dying."""

import atexit
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from torchyard.engines.memory_forecast import DEFAULT_PEAK
from torchyard.engines.throttle import Pace
from torchyard.host.jobserver import Jobserver
from torchyard.host.memory import Memory, read_memory
from torchyard.host.process_tree import LeafProcess, find_leaf_processes, pause, resume
from torchyard.model.quantity import show_count

# Seconds between two looks: when memory may run short, and when there is plenty.
_SHORT, _LONG = 0.25, 1.0


class Change(NamedTuple):
    """What the guard has just changed, for the event log."""

    allowed: int
    paused: int
    available: int
    reason: str


class Guard:
    """Keeps the slots in use, and the compilers that run, within the memory that there is.

    `roots` tells the processes of the jobs that run now; `on_change` is called in the guard's
    thread. Whoever ends jobs by a signal should stop the guard first: a paused process takes
    no notice of a signal until it is resumed.
    """

    def __init__(
        self,
        slots: Jobserver,
        roots: Callable[[], Iterable[int]],
        on_change: Callable[[Change], None],
        memory: Callable[[], Memory] = read_memory,
    ) -> None:
        self._slots = slots
        self._roots = roots
        self._on_change = on_change
        self._memory = memory
        self._paused: dict[int, LeafProcess] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Withhold what memory does not allow, before the first job starts; then keep watch."""
        memory = self._memory()
        pace = Pace(self._slots.count, memory)
        self._slots.withhold(self._slots.count - pace.allowed)
        if pace.allowed < self._slots.count:
            self._tell(pace.allowed, memory, "not enough memory is free for all slots")
        self._thread = threading.Thread(target=self._watch, args=(pace,), daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the watch, and let everything go on: all paused processes, all slots."""
        self._ended.set()
        if self._thread:
            self._thread.join()
        atexit.unregister(self.stop)

    def _watch(self, pace: Pace) -> None:
        wait = _SHORT
        try:
            while not self._ended.wait(wait):
                wait = self._look(pace)
        finally:
            for worker in self._paused.values():
                resume(worker)
            self._slots.withhold(0)

    def _look(self, pace: Pace) -> float:
        """Take one sample and act on it; return how long to wait until the next."""
        memory, workers = self._memory(), find_leaf_processes(self._roots())
        if lost := self._slots.recover(len(workers)):
            found = show_count(lost, "slot")
            self._tell(
                pace.allowed, memory, f"{found} of a build that was killed can be used again"
            )
        self._follow(pace, memory, workers)
        withhold = self._slots.count - pace.allowed
        if withhold > self._slots.withheld:  # waiting at the fifo is the way to win slots back
            self._slots.withhold(withhold, _SHORT)
            return 0
        plenty = memory.available > self._slots.count * DEFAULT_PEAK
        return _LONG if plenty and not self._paused else _SHORT

    def _follow(self, pace: Pace, memory: Memory, workers: list[LeafProcess]) -> None:
        """Decide anew, and do as decided."""
        before = pace.allowed
        decision = pace.decide(memory, workers, self._paused)
        for worker in decision.pause:
            pause(worker)
            self._paused[worker.pid] = worker
        # Besides those decided on, whoever is no worker of ours any more.
        gone = self._paused.keys() - {worker.pid for worker in workers}
        for pid in [*gone, *(worker.pid for worker in decision.resume)]:
            resume(self._paused.pop(pid))
        self._slots.withhold(self._slots.count - decision.allowed)
        if decision.allowed != before or decision.pause or decision.resume:
            self._tell(decision.allowed, memory, decision.reason)

    def _tell(self, allowed: int, memory: Memory, reason: str) -> None:
        self._on_change(Change(allowed, len(self._paused), memory.available, reason))
