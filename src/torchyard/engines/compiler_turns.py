"""Decide which compilers may run when it is known what each will take, from numbers alone."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from torchyard.host.process_tree import LeafProcess


class Candidate(NamedTuple):
    """A compiler, and the bytes that it will still need."""

    worker: LeafProcess
    growth: int

    @property
    def peak(self) -> int:
        return self.worker.memory + self.growth


def next_compilers(
    room: int, running: Collection[Candidate], waiting: Sequence[Candidate]
) -> list[Candidate]:
    """Return those of the waiting that may run now: all that fit into `room`, the largest first.

    One always runs, however little there is.
    """
    left = room - sum(one.growth for one in running)
    started: list[Candidate] = []
    for one in sorted(waiting, key=lambda one: -one.peak):
        if one.growth <= left:
            left -= one.growth
            started.append(one)
    return started if started or running else list(waiting[:1])
