"""Files that survive a power cut: their bytes are on the disk before their name.

A kernel may write a new name to the disk before the file's bytes. Then the file is empty after a
power cut. So the bytes are synced first, under another name. The new name itself is on the disk
after `sync_folders`, which callers invoke once for many files, before they write references to
them.
"""

import errno
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_THREADS = 16
"""Concurrent syncs: file systems commit them together."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

_NO_SYNC = frozenset((errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES))
"""Errors of directories on file systems that can't sync them."""


def write_durably(path: Path, pieces: Iterable[bytes], *, replace: bool) -> None:
    """Write a file under another name, sync it, and rename it.

    Raise FileExistsError if the name is taken, unless `replace` is true.
    """
    part, handle = _open_beside(path)
    try:
        with open(handle, "wb") as out:  # noqa: PTH123 - a file descriptor
            out.writelines(pieces)
            out.flush()
            os.fsync(handle)
        if replace:
            part.replace(path)
        else:
            path.hardlink_to(part)
    finally:
        part.unlink(missing_ok=True)


def _open_beside(path: Path) -> tuple[Path, int]:
    """Create a file `NAME#1`, or with the next free number, and its directory if missing."""
    number = 1
    while True:
        part = path.with_name(f"{path.name}#{number}")  # obstore's name for unfinished files
        try:
            return part, os.open(part, _NEW, 0o666)
        except FileExistsError:
            number += 1
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)


def sync_folders(folders: Iterable[Path]) -> None:
    """Sync the names in directories to the disk; skip missing directories."""
    few = list(folders)
    if len(few) <= 1:
        list(map(_sync_folder, few))
        return
    with ThreadPoolExecutor(min(_THREADS, len(few))) as pool:
        list(pool.map(_sync_folder, few))


def _sync_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EACCES):
            raise
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)


def make_durable_folder(folder: Path) -> None:
    """Create a directory and its parents; on return, they survive a power cut."""
    if not folder.is_dir():
        new = [folder, *(parent for parent in folder.parents if not parent.exists())]
        folder.mkdir(parents=True, exist_ok=True)
        sync_folders(made.parent for made in new)


def replace_durably(path: Path, data: bytes) -> None:
    """Write or replace a small file; on return, its new bytes survive a power cut."""
    write_durably(path, (data,), replace=True)
    sync_folders([path.parent])
