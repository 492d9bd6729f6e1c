"""Remove outdated work directories of jobs."""

import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from torchyard.host.detached import find_record, folder_lock
from torchyard.host.locks import locked
from torchyard.model.job_spec import short_name
from torchyard.model.recipe import Stage
from torchyard.run.workdir import KEPT, RECORD, lock_path, remove_work


def tidy(root: Path, kept: Collection[str], age: float, *, dry_run: bool = False) -> list[Path]:
    """Remove old directories of failed jobs that are no longer in a plan."""
    wanted = {short_name(stage, fingerprint) for fingerprint in kept for stage in Stage}
    removed = []
    for folder in sorted(root.glob("*-*/")):
        if folder.name in wanted or not _is_outdated(folder, age):
            continue
        with locked(lock_path(folder), wait=False) as alone:
            if alone and _is_outdated(folder, age):  # it may be in use again
                removed.append(folder)
                if not dry_run:
                    remove_work(folder)
    return removed + _tidy_records(root, age, dry_run=dry_run)


def _is_outdated(folder: Path, age: float) -> bool:
    """Return whether a directory is older than an age and not protected."""
    with suppress(FileNotFoundError):
        return time.time() - folder.stat().st_mtime >= age and not (folder / KEPT).exists()
    return False


def _tidy_records(root: Path, age: float, *, dry_run: bool) -> list[Path]:
    """Remove records of detached jobs whose end was not read for long."""
    removed = []
    for path in sorted(root.glob(f"*{RECORD}")):
        with folder_lock(root):
            record = find_record(path)
        if record is None:
            continue
        if not record.is_running() and time.time() - record.written() >= age:
            removed.append(path)
            if not dry_run:
                record.forget()
        record.close()
    return removed
