"""Writing the objects of a store that is a directory.

obstore does not sync what it writes, so these writes are torchyard's own.
"""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchyard.errors import StoreError
from torchyard.host.durable import sync_folders, write_durably

_PIECE = 1 << 20


class DurableDirectory:
    """A directory of objects. After `sync`, all that was put or seen survives a power cut."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._unsynced: set[Path] = set()

    def path(self, key: str) -> Path:
        """Return the file of an object."""
        parts = key.split("/")
        if not {"", ".", ".."}.isdisjoint(parts) or "\0" in key:
            msg = f"`{key}` is no name of an object"
            raise StoreError(msg, hint="the store was tampered with: do not use it")
        return self._root / key

    def put(self, key: str, data: bytes | Path | Iterable[bytes], *, replace: bool) -> None:
        """Write an object; raise FileExistsError if there is one, unless it may be replaced."""
        path = self.path(key)
        pieces: Iterable[bytes] = data if not isinstance(data, bytes | Path) else ()
        if isinstance(data, bytes):
            pieces = (data,)
        elif isinstance(data, Path):
            pieces = _read(data)
        write_durably(path, pieces, replace=replace)
        self.note(key)

    def note(self, key: str) -> None:
        """Sync the name of an object with the others: it is new, or gone, or was found.

        One that was found may have been written by a process that has not synced it yet.
        """
        path = self.path(key)
        with self._lock:
            self._unsynced.update(path.parents[: len(Path(key).parts)])

    def sync(self) -> None:
        """Return when the names of all these objects are on the disk."""
        with self._lock:
            folders, self._unsynced = self._unsynced, set()
        try:
            sync_folders(folders)
        except BaseException:
            with self._lock:
                self._unsynced |= folders
            raise


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
