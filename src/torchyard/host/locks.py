"""A directory that only one process uses at a time."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from torchyard.errors import ElsewhereError
from torchyard.host.files import is_full


@contextlib.contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock file; without waiting, tell whether it could be had. The kernel frees it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _lock(path, wait=wait)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)


def _lock(path: Path, *, wait: bool) -> int | None:
    """Lock a file; one that was removed while we waited for it locks nobody else out."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)


@contextlib.contextmanager
def report_full_disk(folder: Path) -> Iterator[None]:
    """Say of a disk without room whose it is: nobody's fault, and to be tried elsewhere."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        msg = f"the disk that `{folder}` is on is full: {error}"
        hint = "make room there, or choose another disk with --work; what was done is kept"
        raise ElsewhereError(msg, hint=hint, reason="disk") from error


def remove_folder(folder: Path) -> None:
    """Remove a directory so that it is there whole or not at all, at every moment."""
    gone = folder.with_name(f"{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)  # of somebody who was killed over it
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def replace_bytes(path: Path, data: bytes) -> None:
    """Write a small file so that it is there whole, old or new, at every moment."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(data)
    part.replace(path)


def disk_usage(folder: Path) -> int:
    """Bytes on disk below a directory."""
    total = 0
    for top, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(top, name).lstat().st_blocks * 512
    return total
