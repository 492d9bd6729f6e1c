"""What jobs take of a machine, and what it has: memory and disk are booked, not hoped for."""

from collections.abc import Iterable
from typing import NamedTuple

from torchyard_farm.scheduling.job_classes import gigabytes


class Resources(NamedTuple):
    """Memory and disk, in GB."""

    memory: int = 0
    disk: int = 0

    def plus(self, other: "Resources") -> "Resources":
        return Resources(self.memory + other.memory, self.disk + other.disk)

    def fits(self, room: "Resources") -> bool:
        return self.memory <= room.memory and self.disk <= room.disk

    def lack(self, room: "Resources") -> int:
        """How much more room it would need."""
        return max(0, self.memory - room.memory) + max(0, self.disk - room.disk)


def resources_for(memory: int | None, disk: int | None) -> Resources:
    """What a job books that wants so many bytes."""
    return Resources(gigabytes(memory), gigabytes(disk))


def sum_resources(amounts: Iterable[Resources]) -> Resources:
    found = Resources()
    for amount in amounts:
        found = found.plus(amount)
    return found
