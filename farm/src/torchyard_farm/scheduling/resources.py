"""Memory and disk that jobs reserve."""

from collections.abc import Iterable
from typing import NamedTuple

_GB = 10**9


class Resources(NamedTuple):
    """Memory and disk, in GB."""

    memory: int = 0
    disk: int = 0

    def plus(self, other: "Resources") -> "Resources":
        return Resources(self.memory + other.memory, self.disk + other.disk)

    def fits(self, free: "Resources") -> bool:
        return self.memory <= free.memory and self.disk <= free.disk

    def shortage(self, free: "Resources") -> int:
        """Return how many GB are missing to fit."""
        return max(0, self.memory - free.memory) + max(0, self.disk - free.disk)


def whole_gigabytes(size: int | None) -> int:
    """Return a size in GB, rounded up; at least 1, even if unknown."""
    return max(1, -(-size // _GB)) if size else 1


def resources_for(memory: int | None, disk: int | None) -> Resources:
    """Return what a job with these needs in bytes reserves."""
    return Resources(whole_gigabytes(memory), whole_gigabytes(disk))


def sum_resources(items: Iterable[Resources]) -> Resources:
    total = Resources()
    for item in items:
        total = total.plus(item)
    return total
