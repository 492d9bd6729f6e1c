"""Files of a store that are cached on this machine, so that later jobs need not fetch them.

Files are stored by digest, and hashed whenever they are used, so damage does no harm:
changed, missing or incomplete files are fetched again. The least recently used are evicted first.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple
from uuid import uuid4

from torchyard.errors import HostError
from torchyard.host.locks import locked
from torchyard.host.untrusted_tree import UntrustedTree
from torchyard.model.result import Tree
from torchyard.store.keys import digest_path

_PIECE = 1 << 20
_BLOCK = 4096


class _Entry(NamedTuple):
    """A cached file: its last use, and its size on disk."""

    used: int
    size: int
    path: str


class LocalCache:
    """Cached files in a directory: up to a limit, and never more than half of the free disk."""

    def __init__(self, folder: Path, limit: int, spare: int = 0) -> None:
        """Open a cache of up to `limit` bytes; `spare` bytes of the disk stay free for a job."""
        self._folder = folder
        self._limit = limit
        self._spare = spare
        self._may_grow = True

    @contextmanager
    def in_turn(self, fingerprint: str) -> Iterator[None]:
        """Lock a result, so that the second of two processes finds it cached."""
        lock = self._folder / f"{fingerprint}.lock"
        with locked(lock, wait=True):
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)

    def expect(self, tree: Tree) -> None:
        """Make room for the missing files of a tree; its cached files are evicted last."""
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

    def lay_out(self, digest: str, out: BinaryIO) -> bool:
        """Write a file from the cache unless it is missing or damaged; return whether it was."""
        copy = self._path(digest)
        whole = sha256()
        try:
            source = copy.open("rb")
        except OSError:
            return False
        with source:
            while piece := source.read(_PIECE):
                whole.update(piece)
                out.write(piece)
        if whole.hexdigest() == digest:
            return True
        copy.unlink(missing_ok=True)
        out.seek(0)
        out.truncate()
        return False

    def keep(self, digest: str, file: BinaryIO) -> None:
        """Add a fetched file; if that fails, it will be fetched again."""
        if not self._may_grow:
            return
        copy = self._path(digest)
        part = copy.with_name(f"{uuid4().hex}.part")
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as out:
                shutil.copyfileobj(file, out, _PIECE)
            part.replace(copy)
        except OSError:
            self._may_grow = False
            with suppress(OSError):
                part.unlink()

    def take(self, tree: Tree, folder: Path) -> None:
        """Move the files of a result built here into the cache."""
        self.expect(tree)
        if not self._may_grow:
            return
        with UntrustedTree(folder) as tree_root:
            for file in tree.files:
                copy = self._path(file.digest)
                with suppress(OSError, HostError):
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    tree_root.move_out(file.path, copy)
                    os.utime(copy)

    @property
    def size(self) -> int:
        """The bytes on disk of all cached files."""
        return sum(entry.size for entry in self._entries())

    def clear(self) -> None:
        """Remove all files."""
        self._may_grow = False
        entries = list(self._entries())
        self._remove(entries, sum(entry.size for entry in entries))

    def _path(self, digest: str) -> Path:
        return self._folder / digest_path(digest)

    def _entries(self) -> Iterator[_Entry]:
        """Yield all files, including leftovers of killed writers."""
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
        """Remove entries in order until `amount` bytes are free; other processes may do so, too."""
        for entry in entries:
            if amount <= 0:
                return
            with suppress(OSError):
                Path(entry.path).unlink()
            amount -= entry.size
