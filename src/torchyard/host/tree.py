"""The files of a source directory, and the digest of their content, the same on every system."""

import os
import stat
from collections.abc import Collection
from hashlib import file_digest
from typing import NamedTuple

from torchyard.errors import HostError
from torchyard.host.files import HOME
from torchyard.host.git import is_checkout, visible_paths
from torchyard.host.own_files import HEAD, STAMP, is_own_file, refuse_secret
from torchyard.model.canonical import fingerprint

_NOT_CONTENT = frozenset((".git", ".hg", ".svn", HOME, STAMP, "__pycache__"))
_IGNORED, _OWN = "git ignores", "torchyard wrote"
_HINT = "stop programs that write there, or exclude it by .gitignore or `leave_out` in [source]"


class SourceFile(NamedTuple):
    """A file or link by its path, its kind, and its digest or target."""

    path: str
    kind: str
    content: str


class SourceContent(NamedTuple):
    """The files of a source directory, and the excluded paths with reasons."""

    files: list[SourceFile]
    left_out: dict[str, str]

    @property
    def digest(self) -> str:
        """The digest of names, executable bits, links and bytes, without times."""
        paths = (os.fsencode(file.path).decode(errors="backslashreplace") for file in self.files)
        return fingerprint(
            sorted((p, *file[1:]) for p, file in zip(paths, self.files, strict=True))
        )


def read_source_tree(
    folder: str, leave_out: Collection[str] = (), *, include_ignored: bool = False
) -> SourceContent:
    """Read a source directory; in a git checkout, only what git sees, unless `include_ignored`.

    Files of version control and torchyard, Python's caches and `leave_out` are excluded.
    """
    if not os.path.isdir(folder):
        msg = f"there is no directory `{folder}`"
        raise HostError(msg, hint="[source] path is relative to the file that names it")
    reader = _Reader(leave_out)
    try:
        root = os.path.abspath(folder)
        reader.read(root, "", None if include_ignored else visible_paths(root))
    except FileNotFoundError as error:
        msg = f"`{error.filename}` was removed while the source directory was read"
        raise HostError(msg, hint=_HINT) from error
    except OSError as error:
        msg = f"`{error.filename}` can't be read: {error.strerror}"
        raise HostError(msg, hint="make it readable, or exclude it from the source") from error
    return SourceContent(reader.files, dict(sorted(reader.left_out.items())))


class _Reader:
    """Collects the files below a directory."""

    def __init__(self, leave_out: Collection[str]) -> None:
        self.files: list[SourceFile] = []
        self.left_out: dict[str, str] = {}
        self._without = frozenset(map(os.path.abspath, leave_out))

    def read(self, folder: str, prefix: str, visible: Collection[str] | None) -> None:
        """Add the content of a directory with the path `prefix` in the source."""
        with os.scandir(folder) as found:
            entries = list(found)
        if prefix and any(entry.name == STAMP for entry in entries):
            self.left_out[prefix] = _OWN
            return
        for entry in entries:
            if entry.name in _NOT_CONTENT or entry.path in self._without:
                continue
            path = f"{prefix}{entry.name}"
            is_directory = entry.is_dir(follow_symlinks=False)
            shown = f"{path}/" if is_directory else path
            if visible is None or shown in visible:
                self._add(entry, path, visible)
            elif path in visible:  # another repository, such as a submodule
                is_own = is_checkout(entry.path)
                self._add(entry, path, visible_paths(entry.path, shown) if is_own else None)
            elif not is_directory or os.listdir(entry.path):
                self.left_out[shown] = _IGNORED

    def _add(self, entry: os.DirEntry[str], path: str, visible: Collection[str] | None) -> None:
        if entry.is_symlink():
            self.files.append(SourceFile(path, "link", os.readlink(entry.path)))
        elif entry.is_dir():
            self.read(entry.path, f"{path}/", visible)
        elif entry.is_file():
            self._add_file(entry, path)
        else:
            msg = f"`{entry.path}` is neither a file, a link nor a directory"
            raise HostError(msg, hint="remove it from the source directory")

    def _add_file(self, entry: os.DirEntry[str], path: str) -> None:
        with open(entry.path, "rb") as file:
            head = file.read(HEAD)
            refuse_secret(head, entry.path)
            if is_own_file(head):
                self.left_out[path] = _OWN
                return
            file.seek(0)
            digest = file_digest(file, "sha256").hexdigest()
        executable = os.name == "posix" and entry.stat().st_mode & stat.S_IXUSR
        self.files.append(SourceFile(path, "program" if executable else "file", digest))
