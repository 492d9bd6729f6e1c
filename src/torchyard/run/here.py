"""What runs on this machine, and what of its disk is there for jobs."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from torchyard.model.order import ORDER, Order, Task
from torchyard.run.detached import detached_in
from torchyard.run.job import COPIES
from torchyard.store.copies import Copies


def jobs_here(work: Path) -> Iterator[Task]:
    """The detached jobs that are at work; those that wait for somebody else's result are not."""
    for name in detached_in(work):
        with suppress(OSError, msgspec.DecodeError):
            order = (work / name / ORDER).read_bytes()
            yield msgspec.json.decode(order, type=Order).task


def disk_here(work: Path) -> int:
    """Bytes that are free, or that copies of the store would make way on."""
    work.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(work).free + Copies(work / COPIES, 0).size
