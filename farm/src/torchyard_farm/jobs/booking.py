"""What jobs take of a machine, and what it has: memory and disk are booked, not hoped for."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import field

from torchyard.model.quantity import show_size
from torchyard.model.values import Value
from torchyard_farm.jobs.kinds import gigabytes
from torchyard_farm.settings.farm import Machine

_GB = 10**9


class Amounts(NamedTuple):
    """Memory and disk, in GB."""

    memory: int = 0
    disk: int = 0

    def plus(self, other: "Amounts") -> "Amounts":
        return Amounts(self.memory + other.memory, self.disk + other.disk)

    def fits(self, room: "Amounts") -> bool:
        return self.memory <= room.memory and self.disk <= room.disk

    def lack(self, room: "Amounts") -> int:
        """How much more room it would need."""
        return max(0, self.memory - room.memory) + max(0, self.disk - room.disk)


def booked_for(memory: int | None, disk: int | None) -> Amounts:
    """What a job books that wants so many bytes."""
    return Amounts(gigabytes(memory), gigabytes(disk))


def total(amounts: Iterable[Amounts]) -> Amounts:
    found = Amounts()
    for amount in amounts:
        found = found.plus(amount)
    return found


class Running(Value, kw_only=True):
    """A job on a machine: its name there, for how many seconds it runs, and what it takes.

    It takes nothing while it waits for the result of another machine.
    """

    name: str
    age: float = 0.0
    takes: Amounts | None = None


class Look(Value, kw_only=True):
    """What a machine says of itself: bytes of memory in all, bytes of disk that are free for jobs.

    `jobs` are those that run there, whoever follows them, by fingerprint.
    """

    memory: int
    disk: int
    jobs: dict[str, Running] = field(default_factory=dict)

    @property
    def taken(self) -> dict[str, Amounts]:
        """What jobs take, by fingerprint."""
        return {name: job.takes for name, job in self.jobs.items() if job.takes is not None}


def capacity(machine: Machine, look: Look | None) -> Amounts:
    """What jobs may book on a machine: what `farm.toml` says, and no more than there is."""
    if look is None:
        return Amounts(machine.memory, machine.disk)
    taken = total(look.taken.values())
    return Amounts(
        min(machine.memory, look.memory // _GB), min(machine.disk, look.disk // _GB + taken.disk)
    )


def strays(look: Look, followed: Iterable[str]) -> dict[str, Amounts]:
    """Jobs that run on a machine and that no build of the master follows; they take their share."""
    known = set(followed)
    return {name: takes for name, takes in look.taken.items() if name not in known}


def complaints(machine: Machine, look: Look | None) -> tuple[str, ...]:
    """What a machine has less of than `farm.toml` says."""
    if look is None:
        return ()
    has = capacity(machine, look)
    found = []
    if has.memory < machine.memory:
        found.append(f"{show_size(look.memory)} of memory, not {machine.memory} GB")
    if has.disk < machine.disk:
        taken = total(look.taken.values()).disk * _GB
        found.append(f"{show_size(look.disk + taken)} of disk, not {machine.disk} GB")
    return tuple(found)
