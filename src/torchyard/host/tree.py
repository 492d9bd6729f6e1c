"""The digest of a directory's content, the same on every system."""

import os
import stat
from collections.abc import Collection, Iterator
from hashlib import file_digest
from pathlib import Path

from torchyard.errors import HostError
from torchyard.model.canonical import fingerprint

NOT_CONTENT = frozenset((".git", ".hg", ".svn", ".torchyard", "__pycache__"))


def tree_digest(folder: str, leave_out: Collection[str] = ()) -> str:
    """Return the digest of names, executable bits, links and bytes, without times.

    Files of version control, of torchyard itself, Python's caches and `leave_out` do not count.
    """
    root = Path(folder)
    if not root.is_dir():
        msg = f"there is no directory `{folder}`"
        raise HostError(msg, hint="[source] path is relative to the file that names it")
    without = {Path(path).absolute() for path in leave_out}
    return fingerprint(sorted(_entries(root, root, without)))


def _entries(folder: Path, root: Path, without: Collection[Path]) -> Iterator[tuple[str, str, str]]:
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        path = folder / entry.name
        if entry.name in NOT_CONTENT or path.absolute() in without:
            continue
        name = os.fsencode(path.relative_to(root).as_posix()).decode(errors="backslashreplace")
        if entry.is_symlink():
            yield name, "link", path.readlink().as_posix()
        elif entry.is_dir():
            yield from _entries(path, root, without)
        elif entry.is_file():
            executable = os.name == "posix" and entry.stat().st_mode & stat.S_IXUSR
            with path.open("rb") as file:
                digest = file_digest(file, "sha256").hexdigest()
            yield name, "program" if executable else "file", digest
        else:
            msg = f"`{path}` is neither a file, a link nor a directory"
            raise HostError(msg, hint="remove it from the source directory")
