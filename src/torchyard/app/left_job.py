"""Jobs whose directories are there: those that run, were interrupted, or failed."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from torchyard.app.locations import work_directory
from torchyard.app.run import find_job_spec
from torchyard.errors import UsageError
from torchyard.model.config import Config
from torchyard.model.job_spec import ORDER, JobSpec
from torchyard.run.workdir import WorkDir, log_path


def find_left_job(
    job: str | None, file: str, work: str | None, changes: tuple[str, ...] = ()
) -> tuple[JobSpec, Config | None]:
    """Return a job as it is planned, or else as it ran last; without a name, the last one."""
    if job is None:
        for spec in _left_jobs(file, work):
            return spec, None
        msg = f"no job of `{file}` runs or has failed"
        raise UsageError(msg, hint="name a job, as `torchyard plan --jobs` lists them")
    planned, config = find_job_spec(job, None, file, changes)
    if not WorkDir(Path(work or work_directory(file)), planned).log.exists():
        for spec in _left_jobs(file, work):  # of a source that was changed since
            if spec.task.id == planned.task.id:
                return spec, config
    return planned, config


def _left_jobs(file: str, work: str | None) -> Iterator[JobSpec]:
    """Yield the jobs that a work directory has, the last first."""
    found: list[tuple[float, Path]] = []
    for order in Path(work or work_directory(file)).glob(f"*/{ORDER}"):
        with suppress(OSError):  # it has not begun, or ends meanwhile
            found.append((log_path(order.parent).stat().st_mtime, order))
    for _, order in sorted(found, reverse=True):
        with suppress(OSError, msgspec.DecodeError):
            yield msgspec.json.decode(order.read_bytes(), type=JobSpec)
