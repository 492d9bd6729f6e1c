"""The detached jobs of this machine, and the disk space available to jobs."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.model.job_spec import SPEC_FILE, JobSpec
from torchyard.model.matrix import Needs
from torchyard.run.conditions import COPIES
from torchyard.run.detached import detached_in
from torchyard.store.local_cache import LocalCache


class LocalJob(NamedTuple):
    """A detached job: its fingerprint, and the seconds since its start.

    `takes` are its needs; None while it waits for another process's result.
    """

    name: str
    fingerprint: str
    age: float
    takes: Needs | None


def running_jobs(work: Path) -> Iterator[LocalJob]:
    """Yield the detached jobs that have started."""
    for name, begun in detached_in(work).items():
        if begun is not None:
            yield LocalJob(name, begun.fingerprint, begun.age, _read_needs(work / name))


def _read_needs(folder: Path) -> Needs | None:
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((folder / SPEC_FILE).read_bytes(), type=JobSpec).task.needs
    return None


def free_disk(work: Path) -> int:
    """Return free bytes, counting evictable cache entries as free."""
    work.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(work).free + LocalCache(work / COPIES, 0).size
