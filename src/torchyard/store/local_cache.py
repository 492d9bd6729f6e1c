"""Files of a store that stay on this machine, so that the next job need not fetch them.

Each is filed under the digest of its bytes, and compared with it whenever it is used. So nothing
has to be in order here: what was changed, removed or written by half is fetched again. What was
not used for the longest time goes first.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from torchyard.host.locks import locked
from torchyard.model.result import Tree

_PIECE = 1 << 20
_BLOCK = 4096


class _Entry(NamedTuple):
    """A file that is there: when it was used last, and what it takes of the disk."""

    used: int
    size: int
    path: str


class LocalCache:
    """The copies in a directory: up to so many bytes, and never more than is left free there."""

    def __init__(self, folder: Path, limit: int, spare: int = 0) -> None:
        """So many bytes at most; `spare` is what a job wants to find free."""
        self._folder = folder
        self._limit = limit
        self._spare = spare
        self._may_grow = True

    @contextmanager
    def in_turn(self, fingerprint: str) -> Iterator[None]:
        """Let one process after the other fetch a result: who comes second finds it here."""
        lock = self._folder / f"{fingerprint}.lock"
        with locked(lock, wait=True):
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)

    def expect(self, tree: Tree) -> None:
        """Make room for what is missing of a tree; what is there of it is the last to go."""
        missing: dict[str, int] = {}
        for file in tree.files:
            try:
                os.utime(self._path(file.digest))
            except OSError:
                missing[file.digest] = -(-file.size // _BLOCK) * _BLOCK
        wanted = sum(missing.values())
        entries = sorted(self._entries())
        used = sum(entry.size for entry in entries)
        self._folder.mkdir(parents=True, exist_ok=True)
        free = used + shutil.disk_usage(self._folder).free
        room = min(self._limit, free // 2, max(0, free - self._spare))
        self._may_grow = wanted <= room
        if self._may_grow:
            self._remove(entries, used + wanted - room)
        else:
            self._remove(entries, used - room)

    def lay_out(self, digest: str, path: Path) -> bool:
        """Write a file from its copy; False if there is none, or none that can be used."""
        copy = self._path(digest)
        whole = sha256()
        try:
            source = copy.open("rb")
        except OSError:
            return False
        with source, path.open("wb") as out:
            while piece := source.read(_PIECE):
                whole.update(piece)
                out.write(piece)
        if whole.hexdigest() == digest:
            return True
        copy.unlink(missing_ok=True)
        return False

    def keep(self, digest: str, path: Path) -> None:
        """Copy a file that was fetched; if that fails, it will be fetched again."""
        if not self._may_grow:
            return
        copy = self._path(digest)
        part = copy.with_name(f"{uuid4().hex}.part")
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, part)
            part.replace(copy)
        except OSError:
            self._may_grow = False
            with suppress(OSError):
                part.unlink()

    def take(self, tree: Tree, folder: Path) -> None:
        """Take the files of a result that was made here; its directory is not used any more."""
        self.expect(tree)
        if not self._may_grow:
            return
        for file in tree.files:
            copy = self._path(file.digest)
            with suppress(OSError):
                copy.parent.mkdir(parents=True, exist_ok=True)
                (folder / file.path).replace(copy)
                os.utime(copy)

    @property
    def size(self) -> int:
        """What all of them take of the disk."""
        return sum(entry.size for entry in self._entries())

    def clear(self) -> None:
        """Give all room back."""
        self._may_grow = False
        entries = list(self._entries())
        self._remove(entries, sum(entry.size for entry in entries))

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest

    def _entries(self) -> Iterator[_Entry]:
        """Everything that is there, also what writers left that were killed."""
        with suppress(OSError), os.scandir(self._folder) as folders:
            for folder in folders:
                with suppress(OSError), os.scandir(folder) as files:
                    for file in files:
                        with suppress(OSError):
                            status = file.stat()
                            size = status.st_blocks * 512
                            yield _Entry(status.st_mtime_ns, size, file.path)

    @staticmethod
    def _remove(entries: list[_Entry], amount: int) -> None:
        """Remove entries, from the first on, until an amount is free; others may do the same."""
        for entry in entries:
            if amount <= 0:
                return
            with suppress(OSError):
                Path(entry.path).unlink()
            amount -= entry.size
