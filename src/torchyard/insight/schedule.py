"""Simulates a build: how long its commands take with some number of compile slots."""

import heapq
from functools import cached_property
from typing import NamedTuple


class Work(NamedTuple):
    """The seconds of commands, and for each the numbers of those that it needs."""

    seconds: tuple[float, ...]
    needs: tuple[tuple[int, ...], ...]


class _Graph:
    def __init__(self, work: Work) -> None:
        self.work = work
        self.users: list[list[int]] = [[] for _ in work.seconds]
        for number, needs in enumerate(work.needs):
            for need in needs:
                self.users[need].append(number)

    @cached_property
    def order(self) -> list[int]:
        """The commands, each after those that it needs."""
        missing = [len(needs) for needs in self.work.needs]
        ready = [number for number, count in enumerate(missing) if not count]
        for number in ready:
            for user in self.users[number]:
                missing[user] -= 1
                if not missing[user]:
                    ready.append(user)
        return ready

    @cached_property
    def remaining(self) -> list[float]:
        """For each command, the longest chain that begins with it."""
        found = list(self.work.seconds)
        for number in reversed(self.order):
            found[number] += max((found[user] for user in self.users[number]), default=0.0)
        return found


def makespan(work: Work, slots: int) -> float:
    """Return the seconds until all commands are done.

    As ninja does, a free slot takes the command with the longest chain behind it.
    """
    graph = _Graph(work)
    missing = [len(needs) for needs in work.needs]
    ready = [(-graph.remaining[n], n) for n, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < slots:
            _, number = heapq.heappop(ready)
            heapq.heappush(running, (now + work.seconds[number], number))
        now, number = heapq.heappop(running)
        for user in graph.users[number]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (-graph.remaining[user], user))
    return now


def critical_path(work: Work) -> list[int]:
    """Return the longest chain of commands, from the first to the last."""
    graph = _Graph(work)
    path: list[int] = []
    following = [number for number, needs in enumerate(work.needs) if not needs]
    while following:
        number = max(following, key=lambda n: graph.remaining[n])
        path.append(number)
        following = graph.users[number]
    return path
