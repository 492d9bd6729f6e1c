"""Directories created atomically, with a stamp that identifies their content."""

import shutil
from collections.abc import Callable
from pathlib import Path

from torchyard.host.own_files import STAMP


def make_whole(folder: Path, stamp: str, fill: Callable[[Path], None]) -> None:
    """Fill a folder unless it exists with the same stamp; replace one with another stamp.

    It is filled under a temporary name and renamed, so its content must not depend on its path.
    Only one process may do so at a time: the one that holds the job.
    """
    if is_made(folder, stamp):
        return
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        fill(part)
        (part / STAMP).write_text(stamp, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def is_made(folder: Path, stamp: str) -> bool:
    """Return whether a folder is complete and has this stamp."""
    try:
        return (folder / STAMP).read_text(encoding="utf-8") == stamp
    except FileNotFoundError:
        return False
