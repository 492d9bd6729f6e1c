"""Named objects in a directory or a bucket; the only module that calls obstore.

Results and blobs are never written twice with different bytes, so every operation can be repeated.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import LocalStore, S3Store

from torchyard.errors import ElsewhereError, SelectionError
from torchyard.host.durable import make_durable_folder
from torchyard.host.locks import locked
from torchyard.host.own_files import STAMP, make_own_directory
from torchyard.store.bucket import open_bucket
from torchyard.store.directory import DurableDirectory
from torchyard.store.retries import Attempts, Retries
from torchyard.store.tags import content_tag, file_digest_of, file_tag
from torchyard.store.urls import bucket_name, object_path, store_folder

CHUNK = 1 << 20
LOCK = ".lock"
"""The file that is locked while an object in its directory is swapped."""

SMALL = 8 << 20
"""Up to this size, an object is sent without checking for it first: it costs one request."""

LARGEST_COPY = 5 << 30
"""The largest object that S3 copies or accepts in one piece."""

_PAGE = 1000
_UPLOADS = 4
"""Concurrent parts of an upload; with more, all would time out on a slow line."""

_UNFINISHED = re.compile(r"#\d+$")
"""The suffix of files that obstore is still writing."""

Headers = Mapping[str, str]
"""HTTP headers of an object: `Content-Type`, `Cache-Control`."""

NO_HEADERS: Headers = MappingProxyType({})


class ObjectMeta(NamedTuple):
    """The metadata of an object."""

    key: str
    size: int
    modified: datetime
    tag: str


class Identity(NamedTuple):
    """The size and the sha256 of an object's bytes."""

    size: int
    sha256: str


class Objects:
    """The objects of one store."""

    def __init__(self, url: str, *, make: bool = True) -> None:
        """Open a store; create a missing directory, unless `make` is false."""
        self.url = url
        self.folder = store_folder(url)
        self._retries = Retries(url, is_bucket=self.folder is None)
        self._directory = None if self.folder is None else DurableDirectory(self.folder)
        self._store: LocalStore | S3Store = (
            open_bucket(url) if self.folder is None else self._open_folder(self.folder, make=make)
        )

    def _open_folder(self, folder: Path, *, make: bool) -> LocalStore:
        if not make and not folder.is_dir():
            msg = f"there is no store `{self.url}`"
            raise SelectionError(msg, hint="`torchyard build` makes one; --store names another")
        try:
            make_durable_folder(folder)
            make_own_directory(folder)
        except OSError as error:
            msg = f"the store `{self.url}` can't be made: {error}"
            raise ElsewhereError(msg, hint="name a writable directory") from error
        return LocalStore(folder)

    def head(self, key: str) -> ObjectMeta | None:
        def ask() -> ObjectMeta | None:
            try:
                return _meta(obstore.head(self._store, key))
            except FileNotFoundError:
                return None

        return self._retries.run(f"look for {key}", ask)

    def read(self, key: str) -> bytes | None:
        """Return the bytes of a small object, or None if there is none."""

        def ask() -> bytes | None:
            try:
                return bytes(obstore.get(self._store, key).bytes())
            except FileNotFoundError:
                return None

        return self._retries.run(f"read {key}", ask)

    def stream(self, key: str) -> Iterator[bytes]:
        """Yield an object in pieces; raise FileNotFoundError if there is none.

        An interrupted stream resumes after its last byte.
        """
        at, size = 0, -1
        trial = Attempts()
        while at != size:
            try:
                options: obstore.GetOptions = {"range": {"offset": at}} if at else {}
                found = obstore.get(self._store, key, options=options)
                size = found.meta["size"]
                for piece in found.stream(min_chunk_size=CHUNK):
                    at += len(piece)
                    trial = self._retries.progress()
                    yield bytes(piece)
            except FileNotFoundError:
                raise
            except (BaseError, OSError) as error:
                self._retries.pause(f"read {key}", error, trial)
            else:
                return

    def read_tagged(self, key: str) -> tuple[bytes, str] | None:
        """Return the bytes of a small object and its tag, or None."""
        if self.folder is not None:
            data = self.read(key)
            return None if data is None else (data, content_tag(data))

        def ask() -> tuple[bytes, str] | None:
            try:
                found = obstore.get(self._store, key)
            except FileNotFoundError:
                return None
            return bytes(found.bytes()), found.meta["e_tag"] or ""

        return self._retries.run(f"read {key}", ask)

    def tag(self, key: str) -> str | None:
        """Return the tag of an object, or None if there is none."""
        if self.folder is not None:
            return self._retries.run(f"read {key}", partial(file_tag, self.folder / key))
        meta = self.head(key)
        return None if meta is None else meta.tag

    def create(self, key: str, data: bytes | Path, headers: Headers = NO_HEADERS) -> bool:
        """Write an object unless its name is in use; return whether the object is ours.

        A writer whose response got lost finds its own bytes when it retries.
        """

        def ask() -> bool:
            try:
                self._put(key, data, headers, replace=False)
            except (AlreadyExistsError, FileExistsError):
                if self.head(key) is None:
                    raise  # another writer failed, or the object was deleted: retry
                self._note(key)
                return isinstance(data, bytes) and self.read(key) == data
            return True

        return self._retries.run(f"create {key}", ask)

    def swap(self, key: str, data: bytes, tag: str | None, headers: Headers = NO_HEADERS) -> bool:
        """Replace the object with this tag, or create it if None; return whether that succeeded.

        Of two concurrent swaps one fails. As with `create`, a lost response does no harm.
        """
        if tag is None:
            return self.create(key, data, headers)
        if self.folder is not None:
            with locked(self.folder / LOCK, wait=True):
                found = self.tag(key)
                if found == tag:
                    before = (self.folder / key).stat()
                    self.write(key, data)
                    _make_newer(self.folder / key, before)
                return found == tag or found == content_tag(data)

        def ask() -> bool:
            try:
                obstore.put(
                    self._store,
                    key,
                    data,
                    mode={"e_tag": tag},
                    attributes=dict(headers) or None,
                    use_multipart=False,
                )
            except (PreconditionError, FileNotFoundError):
                return self.read(key) == data
            return True

        return self._retries.run(f"swap {key}", ask)

    def write(
        self, key: str, data: bytes | Path | Iterable[bytes], headers: Headers = NO_HEADERS
    ) -> None:
        """Write or overwrite an object.

        A retry iterates over the pieces again; if they raise an error, nothing is written.
        """
        self._retries.run(f"write {key}", lambda: self._put(key, data, headers, replace=True))

    def _put(
        self, key: str, data: bytes | Path | Iterable[bytes], headers: Headers, *, replace: bool
    ) -> None:
        """Write an object; raise an error if there is one, unless it may be replaced."""
        if self._directory is not None:
            self._directory.put(key, data, replace=replace)
            return
        obstore.put(
            self._store,
            key,
            data,
            attributes=dict(headers) or None,
            max_concurrency=_UPLOADS,
            mode="overwrite" if replace else "create",
        )

    def ensure(
        self,
        key: str,
        data: bytes | Path | Iterable[bytes],
        identity: Identity,
        headers: Headers = NO_HEADERS,
    ) -> None:
        """Write an object that is named by its content, unless it exists with these bytes.

        Other bytes under its key are damage, and are replaced.
        """
        if identity.size <= SMALL:
            small = data if isinstance(data, bytes | Path) else b"".join(data)
            if self.create(key, small, headers):
                return
        if not self.holds(key, identity):
            self.write(key, data, headers)

    def holds(self, key: str, identity: Identity) -> bool:
        """Return whether an object has this size, and in a directory this digest.

        A bucket has an object completely or not at all; a file in a directory may have been cut
        off, or be nothing but zeros.
        """
        meta = self.head(key)
        if meta is None or meta.size != identity.size:
            return False
        if self._directory is None:
            return True
        self._note(key)
        path = self._directory.path(key)
        return self._retries.run(f"read {key}", partial(file_digest_of, path)) == identity.sha256

    def sync(self) -> None:
        """Make everything written, found or deleted here survive a power cut.

        Call this before writing an object that refers to others. In a bucket, objects are
        durable at once.
        """
        if self._directory is not None:
            self._retries.run("sync", self._directory.sync)

    def _note(self, key: str) -> None:
        if self._directory is not None:
            self._directory.note(key)

    def rename(self, key: str, to: str) -> bool:
        """Rename an object to an unused name; return whether that succeeded.

        It fails if there is no such object: another process may have renamed it.
        """

        def ask() -> bool:
            try:
                obstore.copy(self._store, key, to, overwrite=False)
            except (AlreadyExistsError, FileExistsError, FileNotFoundError):
                return False
            self._note(to)
            return True

        done = self._retries.run(f"rename {key}", ask)
        self.delete([key])
        return done

    def copy(self, key: str, source: "Objects") -> bool:
        """Copy an object of another store on the server; return False if the bucket differs."""
        bucket = bucket_name(self.url)
        if self.folder is not None or source.folder is not None:
            return False
        if bucket_name(source.url) != bucket:
            return False
        whole = open_bucket(f"s3://{bucket}")

        def ask() -> None:
            obstore.copy(whole, object_path(source.url, key), object_path(self.url, key))

        self._retries.run(f"copy {key}", ask)
        return True

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield every object below a prefix. An interrupted listing resumes after its last name.

        Buckets list in order; a directory does not, but is not interrupted either.
        """
        last: str | None = None
        trial = Attempts()
        while True:
            try:
                for page in obstore.list(self._store, prefix, offset=last, chunk_size=_PAGE):
                    trial = self._retries.progress()
                    for found in map(_meta, page):
                        last = found.key
                        if last != STAMP:
                            yield found
            except (BaseError, OSError) as error:
                self._retries.pause(f"list {prefix}", error, trial)
            else:
                return

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; ignore missing ones."""
        for key in keys:

            def ask(key: str = key) -> None:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)
                self._note(key)

            self._retries.run(f"delete {key}", ask)

    def leftovers(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Yield unfinished files of killed writers in a directory; buckets list none."""
        for folder, _, names in os.walk(self.folder) if self.folder else ():
            for name in names:
                if _UNFINISHED.search(name):
                    path = Path(folder, name)
                    with suppress(FileNotFoundError):  # its writer may have just finished
                        yield path, path.stat()


def _make_newer(path: Path, before: os.stat_result) -> None:
    """Set a file's mtime to at least the next second after its predecessor's.

    Web servers make ETags from the second and the size, and clients cache by them.
    """
    oldest = int(before.st_mtime) + 1
    if path.stat().st_mtime < oldest:
        os.utime(path, (oldest, oldest))


def _meta(found: "obstore.ObjectMeta") -> ObjectMeta:
    return ObjectMeta(found["path"], found["size"], found["last_modified"], found["e_tag"] or "")
