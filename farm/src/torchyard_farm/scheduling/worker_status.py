"""What workers have told of their machines."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import field

from torchyard.model.quantity import show_size
from torchyard.model.values import Value
from torchyard_farm.scheduling.resources import Resources, sum_resources
from torchyard_farm.settings.farm import FarmMachine

STATUS_CALL = "look"
"""What a master asks a worker again and again, and what it is told unasked when one connects."""

STATUS_FILE = "machines.json"
"""The file of a master in which is what workers told last."""

JOBS_FOLDER = "work"
"""The directory of a worker in which the jobs of all its slots are."""

_GB = 10**9


class RunningJob(Value, kw_only=True):
    """A job on a machine: its name there, for how many seconds it runs, and what it takes.

    It takes nothing while it waits for the result of another machine.
    """

    name: str
    age: float = 0.0
    takes: Resources | None = None


class WorkerStatus(Value, kw_only=True):
    """What a machine says of itself: bytes of memory in all, bytes of disk that are free for jobs.

    `jobs` are those that run there, whoever follows them, by fingerprint.
    """

    memory: int
    disk: int
    jobs: dict[str, RunningJob] = field(default_factory=dict)

    @property
    def taken(self) -> dict[str, Resources]:
        """What jobs take, by fingerprint."""
        return {name: job.takes for name, job in self.jobs.items() if job.takes is not None}


def capacity(machine: FarmMachine, look: WorkerStatus | None) -> Resources:
    """What jobs may book on a machine: what `farm.toml` says, and no more than there is."""
    if look is None:
        return Resources(machine.memory, machine.disk)
    taken = sum_resources(look.taken.values())
    return Resources(
        min(machine.memory, look.memory // _GB), min(machine.disk, look.disk // _GB + taken.disk)
    )


def orphaned_jobs(look: WorkerStatus, followed: Iterable[str]) -> dict[str, Resources]:
    """Jobs that run on a machine and that no build of the master follows; they take their share."""
    known = set(followed)
    return {name: takes for name, takes in look.taken.items() if name not in known}


def shortfalls(machine: FarmMachine, look: WorkerStatus | None) -> tuple[str, ...]:
    """What a machine has less of than `farm.toml` says."""
    if look is None:
        return ()
    has = capacity(machine, look)
    found = []
    if has.memory < machine.memory:
        found.append(f"{show_size(look.memory)} of memory, not {machine.memory} GB")
    if has.disk < machine.disk:
        taken = sum_resources(look.taken.values()).disk * _GB
        found.append(f"{show_size(look.disk + taken)} of disk, not {machine.disk} GB")
    return tuple(found)


def decode_status(told: str) -> WorkerStatus | None:
    """What a worker told; None if it is of another version, and tells nothing that we know."""
    try:
        return msgspec.json.decode(told, type=WorkerStatus)
    except msgspec.DecodeError:
        return None


def read_statuses(master: Path) -> dict[str, WorkerStatus]:
    """What the workers of a master told last."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(
            (master / STATUS_FILE).read_bytes(), type=dict[str, WorkerStatus]
        )
    return {}
