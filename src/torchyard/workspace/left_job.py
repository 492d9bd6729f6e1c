"""Jobs with a work directory: running, interrupted or failed."""

from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from torchyard.errors import UsageError
from torchyard.model.config import Config
from torchyard.model.job_spec import SPEC_FILE, JobSpec
from torchyard.run.workdir import WorkDir, log_path
from torchyard.workspace.locations import work_directory
from torchyard.workspace.run import find_job_spec


def find_left_job(
    job: str | None, file: str, work: str | None, changes: Sequence[str] = ()
) -> tuple[JobSpec, Config | None]:
    """Return the job spec as planned, or else as last run; by default, of the last job."""
    if job is None:
        if left := left_job(None, file, work):
            return left, None
        msg = f"no job of `{file}` runs or has failed"
        raise UsageError(msg, hint="name a job, as `torchyard plan --list jobs` lists them")
    planned, config = find_job_spec(job, None, file, changes)
    if not WorkDir(Path(work or work_directory(file)), planned).log.exists():
        return left_job(planned.task.id, file, work) or planned, config  # of an older source
    return planned, config


def left_job(name: str | None, file: str, work: str | None = None) -> JobSpec | None:
    """Return the last job in a work directory, or the last one with this name."""
    found: list[tuple[float, Path]] = []
    for path in Path(work or work_directory(file)).glob(f"*/{SPEC_FILE}"):
        with suppress(OSError):  # it has no spec yet, or ends meanwhile
            found.append((log_path(path.parent).stat().st_mtime, path))
    for _, path in sorted(found, reverse=True):
        with suppress(OSError, msgspec.DecodeError):
            spec = msgspec.json.decode(path.read_bytes(), type=JobSpec)
            if name is None or fnmatchcase(spec.task.id, name):
                return spec
    return None
