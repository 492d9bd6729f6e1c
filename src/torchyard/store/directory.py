"""Writing the objects of a store that is a directory.

obstore does not sync what it writes, so torchyard writes these files itself.
"""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchyard.errors import StoreError
from torchyard.host.durable import sync_folders, write_durably

_PIECE = 1 << 20


class DurableDirectory:
    """A directory of objects. After `sync`, every object put or seen survives a power cut."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._unsynced: set[Path] = set()

    def path(self, key: str) -> Path:
        """Return the file of an object."""
        parts = key.split("/")
        if not {"", ".", ".."}.isdisjoint(parts) or "\0" in key:
            msg = f"`{key}` is not the name of an object"
            raise StoreError(msg, hint="the store was tampered with: do not use it")
        return self._root / key

    def put(self, key: str, data: bytes | Path | Iterable[bytes], *, replace: bool) -> None:
        """Write an object; raise FileExistsError if it exists, unless `replace` is true."""
        path = self.path(key)
        pieces: Iterable[bytes] = data if not isinstance(data, bytes | Path) else ()
        if isinstance(data, bytes):
            pieces = (data,)
        elif isinstance(data, Path):
            pieces = _read(data)
        write_durably(path, pieces, replace=replace)
        self.note(key)

    def note(self, key: str) -> None:
        """Remember to sync an object's name: it was written, removed or found.

        Another process may have written a found object without having synced it yet.
        """
        path = self.path(key)
        with self._lock:
            self._unsynced.update(path.parents[: len(Path(key).parts)])

    def sync(self) -> None:
        """Sync the names of all noted objects to the disk."""
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
