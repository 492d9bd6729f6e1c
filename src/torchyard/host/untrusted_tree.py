"""Directories written by untrusted programs: no function here follows links in them.

Such a program can put a link to any path of the machine where a file or directory is expected, and
swap them at any moment. So everything below the root is opened by the handle of its directory, one
name at a time, and links are refused.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self
from uuid import uuid4

from torchyard.errors import HostError
from torchyard.host.files import is_full

_DEPTH = 256
"""Directories nested deeper than this are not read."""

_HANDLES = 64
"""Maximum open directories while a tree is removed."""

_SHOWN = 200
"""The number of characters of a path in errors."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class EntryKind(StrEnum):
    """The kind of an entry."""

    FILE = "file"
    LINK = "link"
    FOLDER = "directory"
    SPECIAL = "device, socket or fifo"


class TreeEntry(NamedTuple):
    """A path below a root, its kind and status, without following links."""

    path: str
    kind: EntryKind
    status: os.stat_result


class UntrustedTree:
    """A directory with untrusted content at a trusted path.

    Paths are relative to it, with `/` between names. Errors are HostErrors, except for a full disk,
    which is an OSError. Threads can share a tree.
    """

    def __init__(self, root: Path, below: str = "") -> None:
        """Open `root`, or the directory at the untrusted path `below` it."""
        self.root = root / below
        with _named(root):
            top = os.open(root, _FOLDER)
        try:
            with _named(self.root):
                self._handle = _descend(top, below)
        finally:
            os.close(top)

    def close(self) -> None:
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def walk(self, *, partly: bool = False) -> Iterator[TreeEntry]:
        """Yield files, links, special files and empty directories, sorted by path.

        With `partly`, skip directories that are unreadable or too deep.
        """
        waiting = list(reversed(self.entries()))
        while waiting:
            entry = waiting.pop()
            if entry.kind is not EntryKind.FOLDER:
                yield entry
                continue
            try:
                inner = self.entries(entry.path)
            except HostError:
                if not partly:
                    raise
                continue
            if not inner:
                yield entry
            waiting += reversed(inner)

    def entries(self, path: str = "") -> list[TreeEntry]:
        """Return the entries of a directory, sorted by name."""
        found = []
        with self._folder(path) as handle, os.scandir(handle) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                with suppress(FileNotFoundError):  # removed meanwhile
                    status = entry.stat(follow_symlinks=False)
                    name = f"{path}/{entry.name}" if path else entry.name
                    found.append(TreeEntry(name, _kind(status), status))
        return found

    def find(self, path: str) -> TreeEntry | None:
        """Return the entry at a path, or None."""
        with self._parent(path) as (handle, name):
            try:
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            except FileNotFoundError:
                return None
        return TreeEntry(path, _kind(status), status)

    def read_link(self, path: str) -> str:
        """Return the target of a link."""
        with self._parent(path) as (handle, name):
            return os.readlink(name, dir_fd=handle)

    def open_file(self, path: str) -> BinaryIO:
        """Open a regular file for reading."""
        with self._parent(path) as (handle, name):
            kind = _kind(os.stat(name, dir_fd=handle, follow_symlinks=False))
            if kind is not EntryKind.FILE:
                raise _refusal(self.root / path, f"is a {kind}, not a file")
            file = os.fdopen(os.open(name, _FILE, dir_fd=handle), "rb")
        status, disk = os.fstat(file.fileno()), os.fstatvfs(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size <= disk.f_blocks * disk.f_frsize:
            return file
        file.close()
        raise _refusal(self.root / path, f"has {status.st_size:,} bytes, more than its disk")

    def create_file(self, path: str) -> BinaryIO:
        """Open a new file for writing; remove a file or link at its path."""
        with self._parent(path) as (handle, name):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=handle)
            return os.fdopen(os.open(name, _NEW, 0o666, dir_fd=handle), "wb")

    def create_link(self, path: str, target: str) -> None:
        """Create a symbolic link; remove a file or link at its path."""
        with self._parent(path) as (handle, name):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=handle)
            os.symlink(target, name, dir_fd=handle)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents unless they exist."""
        with _named(self.root / path):
            os.close(_descend(self._handle, path, make=True))

    def forget_reads(self, path: str) -> None:
        """Set the access time of a file to 0, so that the next read of it shows."""
        with self._parent(path) as (handle, name):
            times = (0, os.stat(name, dir_fd=handle, follow_symlinks=False).st_mtime_ns)
            os.utime(name, ns=times, dir_fd=handle, follow_symlinks=False)

    def rename(self, path: str, to: str) -> None:
        """Rename an entry; replace a file or link with the new name."""
        with self._parent(path) as (handle, name), self._parent(to) as (above, other):
            os.rename(name, other, src_dir_fd=handle, dst_dir_fd=above)

    def move_in(self, source: Path, path: str) -> None:
        """Move a file or directory from a trusted path on the same disk into this tree."""
        with self._parent(path) as (handle, name):
            os.rename(source, name, dst_dir_fd=handle)

    def move_out(self, path: str, to: Path, wanted: EntryKind = EntryKind.FILE) -> None:
        """Move a regular file, or another kind of entry, to a trusted path on the same disk."""
        with self._parent(path) as (handle, name):
            kind = _kind(os.stat(name, dir_fd=handle, follow_symlinks=False))
            if kind is not wanted:
                raise _refusal(self.root / path, f"is a {kind}, not a {wanted}")
            os.rename(name, to, src_dir_fd=handle)

    def has(self, pattern: str) -> bool:
        """Return whether a glob pattern matches any entry."""
        wanted = [name for name in pattern.split("/") if name not in ("", ".")]
        for entry in self.walk(partly=True):
            names = entry.path.split("/")
            if any(_matches(names[:count], wanted) for count in range(1, len(names) + 1)):
                return True
        return False

    def disk_usage(self) -> int:
        """Return the bytes on disk of everything readable."""
        return sum(entry.status.st_blocks * 512 for entry in self.walk(partly=True))

    def remove(self, path: str) -> None:
        """Remove a file, a link, or a directory with its content, if it exists."""
        with self._parent(path) as (handle, name), suppress(FileNotFoundError):
            _remove(handle, name)

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        with _named(self.root / path):
            handle = _descend(self._handle, path)
            try:
                yield handle
            finally:
                os.close(handle)

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield the handle of a path's directory, and the last name of the path."""
        folder, _, name = path.rpartition("/")
        _check_name(name)
        with _named(self.root / path), self._folder(folder) as handle:
            yield handle, name


def remove_tree(path: Path) -> None:
    """Remove a directory with its content, as far as possible."""
    with suppress(OSError):
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _remove(handle, path.name)
        finally:
            os.close(handle)


def _remove(parent: int, name: str) -> None:
    """Remove a file or a directory; raise an OSError if that fails for any content."""
    try:
        os.unlink(name, dir_fd=parent)
    except (IsADirectoryError, PermissionError):  # macOS raises the latter for a directory
        top = _open_to_remove(parent, name)
        try:
            before: list[str] = []
            while (names := sorted(os.listdir(top))) != before:  # noqa: PTH208 - of a handle
                before = names
                _empty(top, top, _HANDLES)
        finally:
            os.close(top)
        os.rmdir(name, dir_fd=parent)


def _empty(folder: int, top: int, handles: int) -> None:
    """Remove the content of a directory, as far as possible.

    Directories too deep for the number of handles are moved up to `top`.
    """
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        with suppress(OSError):  # it remains, with its parents
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=folder)
                continue
            inner = _open_to_remove(folder, entry.name)
            try:
                if handles:
                    _empty(inner, top, handles - 1)
            finally:
                os.close(inner)
            if handles:
                os.rmdir(entry.name, dir_fd=folder)
            else:
                up = f"{uuid4().hex}.gone"
                os.rename(entry.name, up, src_dir_fd=folder, dst_dir_fd=top)


def _open_to_remove(parent: int, name: str) -> int:
    """Open a directory, and set the permissions needed to empty and move it."""
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        handle = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)
        try:
            Path(f"/proc/self/fd/{handle}").chmod(0o700)  # such a handle has no fchmod
        finally:
            os.close(handle)
    return os.open(name, _FOLDER, dir_fd=parent)


def _descend(top: int, path: str, *, make: bool = False) -> int:
    """Open the directory at a path below another one, or create it, without following links."""
    names = path.split("/") if path else []
    if len(names) > _DEPTH:
        raise OSError(errno.ENAMETOOLONG, f"more than {_DEPTH} directories are nested")
    handle = os.dup(top)
    for name in names:
        try:
            _check_name(name)
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=handle)
            inner = os.open(name, _FOLDER, dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle


def _check_name(name: str) -> None:
    if name in ("", ".", "..") or "\0" in name:
        msg = f"`{name}` can't be part of a path here"
        raise HostError(msg, hint="it would lead out of the directory")


def _kind(status: os.stat_result) -> EntryKind:
    kinds = {
        stat.S_IFREG: EntryKind.FILE,
        stat.S_IFLNK: EntryKind.LINK,
        stat.S_IFDIR: EntryKind.FOLDER,
    }
    return kinds.get(stat.S_IFMT(status.st_mode), EntryKind.SPECIAL)


def _matches(names: list[str], wanted: list[str]) -> bool:
    """Return whether the names of a path match a pattern; many `**` take bounded time."""
    reached = {0}  # numbers of names that the pattern may have matched so far
    for want in wanted:
        if want == "**":
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and fnmatchcase(names[n], want)}
        if not reached:
            return False
    return len(names) in reached


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn an OSError into a HostError that names the path."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise _refusal(path, "is or leads through a link or file, not a directory") from error
        raise _refusal(path, f"can't be used: {error.strerror}") from error


def _refusal(path: Path, why: str) -> HostError:
    shown = str(path) if str(path).isprintable() else ascii(str(path))[1:-1]
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}…"
    return HostError(f"`{shown}` {why}", hint="links are not followed there")


def lay_out_files(files: Mapping[str, str], folder: Path) -> Path:
    """Write the files in a job spec to a directory, never outside of it, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    with UntrustedTree(folder) as tree:
        for name, text in files.items():
            if above := name.rpartition("/")[0]:
                tree.make_directory(above)
            with tree.create_file(name) as file:
                file.write(text.encode())
    return folder
