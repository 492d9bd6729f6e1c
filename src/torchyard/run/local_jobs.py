"""What runs on this machine, and what of its disk is there for jobs."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.model.job_spec import ORDER, JobSpec
from torchyard.model.matrix import Needs
from torchyard.run.detached import detached_in
from torchyard.run.job import COPIES
from torchyard.store.local_cache import LocalCache


class JobHere(NamedTuple):
    """A detached job: its fingerprint, and for how many seconds it runs.

    One that is at work takes what it needs; one that waits for somebody else's result does not.
    """

    name: str
    fingerprint: str
    age: float
    takes: Needs | None


def jobs_here(work: Path) -> Iterator[JobHere]:
    """The detached jobs that have begun."""
    for name, begun in detached_in(work).items():
        if begun is not None:
            yield JobHere(name, begun.fingerprint, begun.age, _read_needs(work / name))


def _read_needs(folder: Path) -> Needs | None:
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((folder / ORDER).read_bytes(), type=JobSpec).task.needs
    return None


def disk_here(work: Path) -> int:
    """Bytes that are free, or that copies of the store would make way on."""
    work.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(work).free + LocalCache(work / COPIES, 0).size
