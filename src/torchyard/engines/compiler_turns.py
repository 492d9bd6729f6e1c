"""Decide which compilers may run when it is known what each will take, from numbers alone.

The largest go first. One that has to wait is not delayed further: others overtake it if they will
have ended when it can start, or fit beside it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torchyard.host.process_tree import LeafProcess


class Candidate(NamedTuple):
    """A compiler, the bytes that it will still need, and its CPU seconds until its end."""

    worker: LeafProcess
    growth: int
    seconds: float

    @property
    def key(self) -> tuple[int, float]:
        return self.worker.key

    @property
    def peak(self) -> int:
        return self.worker.memory + self.growth


class _Start(NamedTuple):
    """When a waiting compiler can start, and the bytes that will be left beside it."""

    seconds: float
    left: float


def next_compilers(
    room: float, running: Iterable[Candidate], waiting: Sequence[Candidate]
) -> list[Candidate]:
    """Return those of the waiting that may run now; `room` are the bytes that are free.

    One always runs, however little there is.
    """
    running = list(running)
    left = room - sum(one.growth for one in running)
    started: list[Candidate] = []
    first: _Start | None = None
    for one in sorted(waiting, key=lambda one: -one.peak):
        if one.growth > left:
            first = first or _start_of(one, left, running)
            continue
        if first and one.seconds > first.seconds:
            if one.growth > first.left:
                continue
            first = first._replace(left=first.left - one.growth)
        left -= one.growth
        started.append(one)
        running.append(one)
    return started if running else list(waiting[:1])


def _start_of(one: Candidate, left: float, running: Iterable[Candidate]) -> _Start:
    seconds = 0.0
    for ending in sorted(running, key=lambda other: other.seconds):
        if one.growth <= left:
            break
        left += ending.peak
        seconds = ending.seconds
    return _Start(seconds, left - one.growth)
