"""The status that workers report: their machine's resources, and the jobs that run there."""

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
"""Name of the status call, polled by the master, and of the report sent on connect."""

STATUS_FILE = "machines.json"
"""The master's file with the last status of each machine."""

JOBS_FOLDER = "work"
"""The directory of a worker in which the jobs of all its slots run."""

_GB = 10**9


class RunningJob(Value, kw_only=True):
    """A job on a machine: its name there, its age in seconds, and the resources it takes.

    It takes no resources while it waits for the result of another machine.
    """

    name: str
    age: float = 0.0
    takes: Resources | None = None


class WorkerStatus(Value, kw_only=True):
    """A machine's total memory and free disk in bytes, and its running jobs by fingerprint."""

    memory: int
    disk: int
    jobs: dict[str, RunningJob] = field(default_factory=dict)

    @property
    def taken(self) -> dict[str, Resources]:
        """The resources that jobs take, by fingerprint."""
        return {name: job.takes for name, job in self.jobs.items() if job.takes is not None}


def capacity(machine: FarmMachine, status: WorkerStatus | None) -> Resources:
    """Return what jobs may reserve on a machine: by `farm.toml`, but at most what exists."""
    if status is None:
        return Resources(machine.memory, machine.disk)
    taken = sum_resources(status.taken.values())
    return Resources(
        min(machine.memory, status.memory // _GB),
        min(machine.disk, status.disk // _GB + taken.disk),
    )


def orphaned_jobs(status: WorkerStatus, followed: Iterable[str]) -> dict[str, Resources]:
    """Return the resources of a machine's jobs without a build."""
    jobs = set(followed)
    return {name: takes for name, takes in status.taken.items() if name not in jobs}


def shortfalls(machine: FarmMachine, status: WorkerStatus | None) -> tuple[str, ...]:
    """Return the resources of a machine below those in `farm.toml`."""
    if status is None:
        return ()
    has = capacity(machine, status)
    found = []
    if has.memory < machine.memory:
        found.append(f"{show_size(status.memory)} of memory, not {machine.memory} GB")
    if has.disk < machine.disk:
        taken = sum_resources(status.taken.values()).disk * _GB
        found.append(f"{show_size(status.disk + taken)} of disk, not {machine.disk} GB")
    return tuple(found)


def decode_status(report: str) -> WorkerStatus | None:
    """Return a worker's status, or None if its version is incompatible."""
    try:
        return msgspec.json.decode(report, type=WorkerStatus)
    except msgspec.DecodeError:
        return None


def read_statuses(master: Path) -> dict[str, WorkerStatus]:
    """Return the last status of each machine, from the file in a master's directory."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(
            (master / STATUS_FILE).read_bytes(), type=dict[str, WorkerStatus]
        )
    return {}
