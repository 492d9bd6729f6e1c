"""torchyard's cache directory, and a directory that programs can run from."""

import os
from contextlib import suppress
from pathlib import Path


def cache_base() -> Path | None:
    """Return the caller's directory of caches, created if missing; None if it is not writable."""
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        base.mkdir(parents=True, exist_ok=True)
        return base if os.access(base, os.W_OK) else None
    return None


def cache_folder(name: str) -> Path | None:
    """Return a folder of torchyard's cache; None if it can't be created.

    It is in the temporary directory if the caller's caches are not writable.
    """
    with suppress(OSError):
        path = (cache_base() or _temporary()) / "torchyard" / name
        path.mkdir(parents=True, exist_ok=True)
        return path.absolute()
    return None


def _shared() -> Path:
    """Return the directory for all users' temporary files."""
    from tempfile import gettempdir  # noqa: PLC0415 - slow to import, and rarely needed

    return Path(gettempdir())


def _temporary() -> Path:
    """Return a directory that only this user can access."""
    path = Path(_shared(), f"torchyard-{os.geteuid()}")
    path.mkdir(mode=0o700, exist_ok=True)
    if path.lstat().st_uid != os.geteuid():
        raise PermissionError(path)  # its owner could put anything there
    return path


def runnable_folder() -> Path | None:
    """Return the temporary directory, or the cache if programs can't run from the former."""
    folders = (_shared(), cache_folder("tmp"))
    return next((folder for folder in folders if folder and can_run_in(folder)), None)


def can_run_in(folder: Path) -> bool:
    """Return whether programs can run from a directory, i.e. it is not mounted with `noexec`."""
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC
