"""Simulate a build: the time of its commands with a number of compile slots."""

import heapq
from collections.abc import Sequence
from functools import cached_property


class Work:
    """The seconds of commands, and the numbers of the commands that each needs."""

    def __init__(self, seconds: Sequence[float], needs: Sequence[Sequence[int]]) -> None:
        self.seconds = seconds
        self.needs = needs
        self.users: list[list[int]] = [[] for _ in seconds]
        for number, needed in enumerate(needs):
            for need in needed:
                self.users[need].append(number)

    @cached_property
    def order(self) -> list[int]:
        """The commands, each after its inputs."""
        missing = [len(needs) for needs in self.needs]
        ready = [number for number, count in enumerate(missing) if not count]
        for number in ready:
            for user in self.users[number]:
                missing[user] -= 1
                if not missing[user]:
                    ready.append(user)
        return ready

    @cached_property
    def remaining(self) -> list[float]:
        """For each command, the seconds of the longest chain from it."""
        found = list(self.seconds)
        for number in reversed(self.order):
            found[number] += max((found[user] for user in self.users[number]), default=0.0)
        return found


def makespan(work: Work, slots: int) -> float:
    """Return the seconds until all commands are done.

    Like ninja, a free slot takes the command with the longest chain after it.
    """
    if slots == 1:
        return sum(work.seconds)
    missing = [len(needs) for needs in work.needs]
    ready = [(-work.remaining[n], n) for n, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < slots:
            _, number = heapq.heappop(ready)
            heapq.heappush(running, (now + work.seconds[number], number))
        now, number = heapq.heappop(running)
        for user in work.users[number]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (-work.remaining[user], user))
    return now


def critical_path(work: Work) -> list[int]:
    """Return the longest chain of commands, from the first to the last."""
    path: list[int] = []
    following = [number for number, needs in enumerate(work.needs) if not needs]
    while following:
        number = max(following, key=lambda n: work.remaining[n])
        path.append(number)
        following = work.users[number]
    return path
