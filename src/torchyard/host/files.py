"""Read and write text files.

Paths are strings here and in all code that plans: importing pathlib would take every command
longer than reading its configuration does.
"""

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from os.path import basename, dirname, exists, expanduser, isdir, isfile, join, normpath, realpath

from torchyard.errors import BuildError, HostError

__all__ = [
    "HOME",
    "basename",
    "complete_environment",
    "data_path",
    "dirname",
    "exists",
    "is_full",
    "isdir",
    "join",
    "link_or_copy",
    "list_data",
    "normpath",
    "read_data",
    "read_folder",
    "read_globs",
    "read_text",
    "realpath",
    "write_text",
]

HOME = ".torchyard"
"""The directory beside the configuration with everything that torchyard itself writes."""

_DATA = join(dirname(dirname(__file__)), "data")

_FOLDER = 1 << 20
_NOT_TEXT = frozenset(("__pycache__", ".git"))

_FULL = (errno.ENOSPC, errno.EDQUOT)

_NO_LINK = frozenset((errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP))
"""Errors of `link` that require a copy: another disk, or no support for hard links."""


_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - as Python does

FULL = 50 << 20
"""A disk with fewer free bytes than this counts as full."""


def complete_environment() -> None:
    """Set what some containers lack: a home, and a directory for temporary files.

    A user without a name has no home, and all volumes but one may be read-only. `podman run
    --env-host` passes the host's TMPDIR, which may be read-only, too.
    """
    if "HOME" not in os.environ and expanduser("~") == "~":
        os.environ["HOME"] = "/nonexistent"
    folders = (os.environ.get("TMPDIR", ""), *_TEMPORARY)
    if not any(os.access(folder, os.W_OK) for folder in folders):
        folder = join(os.getcwd(), HOME, "tmp")
        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            os.environ["TMPDIR"] = folder


def absolute(path: str) -> str:
    return os.path.abspath(path)


def is_full(error: OSError) -> bool:
    """Return whether a disk or quota is full; shutil's collected errors keep only the text."""
    return error.errno in _FULL or says_full(str(error))


def says_full(text: str) -> bool:
    """Return whether an error text of a Python or Rust program means a full disk or quota."""
    return any(f"[Errno {number}]" in text or f"(os error {number})" in text for number in _FULL)


def read_text(path: str) -> str:
    """Read a text file, or raise HostError with the reason."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read()
    except FileNotFoundError as error:
        msg = f"there is no file `{path}`"
        raise HostError(msg) from error
    except (OSError, UnicodeDecodeError) as error:
        msg = f"`{path}` can't be read: {error}"
        raise HostError(msg) from error


def data_path(name: str) -> str:
    """Return the path of a file shipped with torchyard."""
    return join(_DATA, name)


def read_data(name: str) -> str:
    """Read a text file shipped with torchyard."""
    return read_text(data_path(name))


def read_folder(path: str) -> dict[str, str]:
    """Read the text files below a directory, keyed by relative path, sorted."""
    if not isdir(path):
        msg = f"there is no directory `{path}`"
        raise HostError(msg)
    found: dict[str, str] = {}
    size = 0
    for top, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in _NOT_TEXT)
        for name in sorted(files):
            whole = join(top, name)
            size += os.stat(whole).st_size if exists(whole) else 0
            _refuse_more(size, f"in `{path}`")
            found[os.path.relpath(whole, path)] = read_text(whole)
    return dict(sorted(found.items()))


def read_globs(base: str, globs: Iterable[str]) -> dict[str, str]:
    """Read the text files that match globs, keyed by path relative to `base`, in order.

    The files of a glob are sorted by name; each glob must match at least one.
    """
    from glob import glob  # noqa: PLC0415 - slow to import

    found: dict[str, str] = {}
    for pattern in globs:
        paths = sorted(path for path in glob(join(base, pattern), recursive=True) if isfile(path))
        if not paths:
            msg = f"there is no file `{pattern}`"
            raise HostError(msg, hint=f"it is relative to `{base or '.'}`")
        for path in paths:
            _refuse_more(sum(map(len, found.values())) + os.stat(path).st_size, f"`{pattern}`")
            found[os.path.relpath(path, base or ".")] = read_text(path)
    return found


def _refuse_more(size: int, where: str) -> None:
    if size > _FOLDER:
        msg = f"the files {where} have {size:,} bytes or more; the limit is {_FOLDER:,}"
        hint = "keep large files elsewhere: every job carries these files"
        raise HostError(msg, hint=hint)


def list_data(folder: str) -> list[str]:
    """Return the names of the files in a folder shipped with torchyard."""
    return os.listdir(data_path(folder))


def link_or_copy(source: str, path: str) -> None:
    """Hard-link a file, or copy it if that is impossible; follow symbolic links.

    An existing file at `path` is never written to: it may have other hard links.
    """
    real = realpath(source)
    try:
        try:
            os.link(real, path)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            _copy(real, path)
    except FileExistsError as error:
        msg = f"`{source}` would replace the existing `{path}`"
        raise BuildError(msg, hint="let only one of them be installed") from error


def _copy(source: str, path: str) -> None:
    import shutil  # noqa: PLC0415 - hardly ever needed, and slow to import

    with open(source, "rb") as old, open(path, "xb") as new:
        shutil.copyfileobj(old, new)
    shutil.copystat(source, path)


def write_text(path: str, text: str, *, replace: bool = False) -> None:
    """Write a text file; overwrite an existing one only with `replace`."""
    try:
        with open(path, "w" if replace else "x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError as error:
        msg = f"`{path}` exists already"
        raise HostError(msg, hint="pass --force to replace it") from error
    except OSError as error:
        if is_full(error):
            raise
        msg = f"`{path}` can't be written: {error}"
        raise HostError(msg) from error
