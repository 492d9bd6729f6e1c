"""Locks on directories, and atomic replacement of files and directories."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from torchyard.errors import ElsewhereError
from torchyard.host.files import is_full
from torchyard.host.untrusted_tree import remove_tree


@contextlib.contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock file; yield whether it was acquired. The kernel releases it if we are killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _lock(path, wait=wait)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)


def _lock(path: Path, *, wait: bool) -> int | None:
    """Lock a file; repeat if it was removed meanwhile, as a removed file excludes no process."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o622)
        keep_readers_out(handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)


def keep_readers_out(handle: int) -> None:
    """Set the read permissions of a lock file to its write permissions.

    Read permission is enough to lock a file.
    """
    status = os.fstat(handle)
    writers = status.st_mode & 0o222
    mode = writers | writers << 1
    if status.st_uid == os.geteuid() and mode != status.st_mode & 0o777:
        os.fchmod(handle, mode)


@contextlib.contextmanager
def report_full_disk(folder: Path) -> Iterator[None]:
    """Turn errors of a full disk into an ElsewhereError that names the directory."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        msg = f"the disk of `{folder}` is full: {error}"
        hint = "make room, or choose another disk with --work; finished work is kept"
        raise ElsewhereError(msg, hint=hint, reason="disk") from error


def remove_folder(folder: Path) -> None:
    """Remove a directory atomically: it is always complete or gone."""
    gone = folder.with_name(f"{folder.name}.gone")
    remove_tree(gone)  # left by a killed process
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
    remove_tree(gone)


def replace_bytes(path: Path, data: bytes) -> None:
    """Write a small file atomically: it always has the old or the new bytes."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
