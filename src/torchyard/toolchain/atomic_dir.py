"""Folders that are there whole or not at all, and say what is in them."""

import shutil
from collections.abc import Callable
from pathlib import Path

STAMP = ".torchyard-stamp"


def make_whole(folder: Path, stamp: str, fill: Callable[[Path], None]) -> None:
    """Fill a folder, unless one with the same stamp is there; one with another stamp is replaced.

    It is filled under another name beside its place, so its content must not know its own path.
    One process may do that at a time: the one that has the job.
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
    """Whether a folder was made whole, with this stamp."""
    try:
        return (folder / STAMP).read_text(encoding="utf-8") == stamp
    except FileNotFoundError:
        return False
