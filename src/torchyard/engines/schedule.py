"""Choose the next job."""

import heapq
import random
from collections.abc import Callable, Collection, Iterable

from torchyard.engines.pending import JobGraph, missing_jobs


class Schedule:
    """The remaining jobs, by number; those on the critical path come first.

    Equals come in random order, so that two builds of one plan seldom start the same job.
    """

    def __init__(
        self, graph: JobGraph, known: Collection[str], left: set[int], urgency: list[int]
    ) -> None:
        self._graph = graph
        self._urgency = urgency
        self._there = {n for n, name in enumerate(graph.fingerprints) if name in known}
        self._ready: list[tuple[int, float, int]] = []
        self._later: dict[int, float] = {}
        self._taken: set[int] = set()
        self.left = left
        self._offer(self.left)

    @property
    def has_work(self) -> bool:
        """Whether any job can start, now or later."""
        return bool(self._ready or self._later)

    def next(self, now: float) -> int | None:
        """Take the most urgent job that can start, or return None."""
        for number in [n for n, until in self._later.items() if until <= now]:
            del self._later[number]
            self._push(number)
        while self._ready:
            number = heapq.heappop(self._ready)[2]
            if self._can_begin(number):
                self._taken.add(number)
                return number
        return None

    def put_back(self, number: int, until: float = 0.0) -> None:
        """Put a taken job back; it is not offered again before `until`."""
        self._taken.discard(number)
        if until:
            self._later[number] = until
        else:
            self._push(number)

    def done(self, number: int) -> None:
        """Record that the store has a job's result."""
        self.left.discard(number)
        self._taken.discard(number)
        self._there.add(number)
        self._offer(self._graph.users[number])

    def lost(self, number: int, has: Callable[[str], bool]) -> None:
        """Schedule the missing inputs of a job again."""
        inputs = self._graph.inputs[number]
        gone = {i for i in inputs if not has(self._graph.fingerprints[i])}
        self._there -= gone
        known = {self._graph.fingerprints[n] for n in self._there}
        again = missing_jobs(self._graph, known, gone)
        self.left |= again
        self._offer(again)

    def fail(self, number: int) -> list[int]:
        """Drop a failed job and the jobs that need it; return the latter."""
        dropped = []
        waiting = [number]
        self.left.discard(number)
        while waiting:
            for user in self._graph.users[waiting.pop()]:
                if user in self.left:
                    self.left.discard(user)
                    dropped.append(user)
                    waiting.append(user)
        return dropped

    def _offer(self, numbers: Iterable[int]) -> None:
        for number in filter(self._can_begin, numbers):
            self._push(number)

    def _can_begin(self, number: int) -> bool:
        """Return whether a job remains, is not taken, and has all inputs."""
        here = number in self.left and number not in self._taken
        return here and self._there.issuperset(self._graph.inputs[number])

    def _push(self, number: int) -> None:
        entry = (-self._urgency[number], random.random(), number)  # noqa: S311 - only to spread
        heapq.heappush(self._ready, entry)
