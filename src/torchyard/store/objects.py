"""Named objects in a directory or a bucket; the only module that uses obstore.

Results and blobs are never written twice with different bytes, so every operation can be repeated.
"""

import os
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PreconditionError,
)
from obstore.store import LocalStore, S3Store

from torchyard.errors import ElsewhereError, SelectionError, UsageError
from torchyard.host.locks import locked
from torchyard.host.secrets import taken
from torchyard.store.places import PLACES, bucket_name, object_path, store_folder
from torchyard.store.refusals import plain_message, unreachable
from torchyard.store.tags import content_tag, file_tag

if TYPE_CHECKING:
    from obstore.store import S3Config

SILENCE = 30.0
"""Seconds without a byte of a response after which a request counts as lost."""

PATIENCE = 60.0
"""Seconds of failures after which a store is given up."""

CHUNK = 1 << 20
LOCK = ".lock"
"""The file in a directory that is locked while an object there is swapped."""

LARGEST_COPY = 5 << 30
"""The largest object that S3 copies, or accepts in one piece."""

_PAGE = 1000
_UPLOADS = 4
"""Concurrent parts of one upload: on a slow line, more would all time out."""

_FINAL = re.compile(r"status code: 40[1345]\b")
"""Errors of obstore that a retry does not help."""

_UNFINISHED = re.compile(r"#\d+$")
"""The suffix of files that obstore has not finished writing."""

Headers = Mapping[str, str]
"""HTTP headers of an object: `Content-Type`, `Cache-Control`."""

NO_HEADERS: Headers = MappingProxyType({})

T = TypeVar("T")


class ObjectMeta(NamedTuple):
    """The metadata of an object."""

    key: str
    size: int
    modified: datetime
    tag: str


class _Attempts:
    """The number of failed attempts, and the time of the first."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.attempt = 0


class Objects:
    """The objects of one store."""

    def __init__(self, url: str, *, make: bool = True) -> None:
        """Open a store; create a missing directory, unless `make` is false."""
        self.url = url
        self.folder = store_folder(url)
        self._is_down = False
        self._store: LocalStore | S3Store = (
            self._open_bucket(url)
            if self.folder is None
            else self._open_folder(self.folder, make=make)
        )

    def _open_folder(self, folder: Path, *, make: bool) -> LocalStore:
        if not make and not folder.is_dir():
            msg = f"there is no store `{self.url}`"
            raise SelectionError(msg, hint="`torchyard build` makes one; --store names another")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"the store `{self.url}` can't be made: {error}"
            raise ElsewhereError(msg, hint="name a directory that we may write to") from error
        return LocalStore(folder)

    def _open_bucket(self, url: str) -> S3Store:
        """Open a bucket; server and credentials come from AWS's own variables."""
        if "@" in bucket_name(url):
            msg = f"`{url}` holds a name or a password, which logs and results would reveal"
            raise UsageError(msg, hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead")
        try:
            return S3Store.from_url(
                url,
                config={"copy_if_not_exists": "header:if-none-match:*", **_credentials()},
                client_options={
                    "allow_http": True,
                    "connect_timeout": timedelta(seconds=5),
                    "read_timeout": timedelta(seconds=SILENCE),
                    "timeout": timedelta(seconds=10 * SILENCE),
                },
                retry_config={"max_retries": 6, "retry_timeout": timedelta(seconds=PATIENCE)},
            )
        except BaseError as error:
            msg = f"`{url}` is no place for a store: {plain_message(error)}"
            raise UsageError(msg, hint=PLACES) from error

    def head(self, key: str) -> ObjectMeta | None:
        def ask() -> ObjectMeta | None:
            try:
                return _meta(obstore.head(self._store, key))
            except FileNotFoundError:
                return None

        return self._try(f"look for {key}", ask)

    def read(self, key: str) -> bytes | None:
        """Return the bytes of a small object, or None if there is none."""

        def ask() -> bytes | None:
            try:
                return bytes(obstore.get(self._store, key).bytes())
            except FileNotFoundError:
                return None

        return self._try(f"read {key}", ask)

    def stream(self, key: str) -> Iterator[bytes]:
        """Yield an object in pieces; raise FileNotFoundError if there is none.

        An interrupted stream resumes after its last byte.
        """
        at, size = 0, -1
        trial = _Attempts()
        while at != size:
            try:
                options: obstore.GetOptions = {"range": {"offset": at}} if at else {}
                found = obstore.get(self._store, key, options=options)
                size = found.meta["size"]
                for piece in found.stream(min_chunk_size=CHUNK):
                    at += len(piece)
                    trial = self._progress()
                    yield bytes(piece)
            except FileNotFoundError:
                raise
            except (BaseError, OSError) as error:
                self._pause(f"read {key}", error, trial)
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

        return self._try(f"read {key}", ask)

    def tag(self, key: str) -> str | None:
        """Return the tag of an object, or None if there is none."""
        if self.folder is not None:
            return self._try(f"read {key}", partial(file_tag, self.folder / key))
        meta = self.head(key)
        return None if meta is None else meta.tag

    def create(self, key: str, data: bytes | Path, headers: Headers = NO_HEADERS) -> bool:
        """Write an object if there is none of that name; return whether it is ours.

        A writer whose response got lost finds its own bytes when it retries.
        """

        def ask() -> bool:
            try:
                obstore.put(
                    self._store, key, data, mode="create", attributes=self._attributes(headers)
                )
            except (AlreadyExistsError, FileExistsError):
                if self.head(key) is None:
                    raise  # another writer failed, or the object was deleted: retry
                return isinstance(data, bytes) and self.read(key) == data
            return True

        return self._try(f"create {key}", ask)

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
                    attributes=self._attributes(headers),
                    use_multipart=False,
                )
            except (PreconditionError, FileNotFoundError):
                return self.read(key) == data
            return True

        return self._try(f"swap {key}", ask)

    def write(
        self, key: str, data: bytes | Path | Iterable[bytes], headers: Headers = NO_HEADERS
    ) -> None:
        """Write or overwrite an object.

        A retry iterates over the pieces again; if they raise an error, nothing is written.
        """

        def ask() -> None:
            obstore.put(
                self._store,
                key,
                data,
                attributes=self._attributes(headers),
                max_concurrency=_UPLOADS,
            )

        self._try(f"write {key}", ask)

    def rename(self, key: str, to: str) -> bool:
        """Rename an object to an unused name; return whether that succeeded.

        It does not if there is no such object: another process may have renamed it.
        """

        def ask() -> bool:
            try:
                obstore.copy(self._store, key, to, overwrite=False)
            except (AlreadyExistsError, FileExistsError, FileNotFoundError):
                return False
            return True

        done = self._try(f"rename {key}", ask)
        self.delete([key])
        return done

    def copy(self, key: str, source: "Objects") -> bool:
        """Copy an object of another store on the server; return False if in another bucket."""
        bucket = bucket_name(self.url)
        if self.folder is not None or source.folder is not None:
            return False
        if bucket_name(source.url) != bucket:
            return False
        whole = self._open_bucket(f"s3://{bucket}")

        def ask() -> None:
            obstore.copy(whole, object_path(source.url, key), object_path(self.url, key))

        self._try(f"copy {key}", ask)
        return True

    def _attributes(self, headers: Headers) -> "obstore.Attributes | None":
        """Return the attributes for a bucket; a directory has none."""
        return dict(headers) if headers and self.folder is None else None

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Yield every object below a prefix. An interrupted listing resumes after its last name.

        Buckets list in order; a directory does not, but is not interrupted either.
        """
        last: str | None = None
        trial = _Attempts()
        while True:
            try:
                for page in obstore.list(self._store, prefix, offset=last, chunk_size=_PAGE):
                    trial = self._progress()
                    for found in map(_meta, page):
                        last = found.key
                        yield found
            except (BaseError, OSError) as error:
                self._pause(f"list {prefix}", error, trial)
            else:
                return

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; missing ones are no error."""
        for key in keys:

            def ask(key: str = key) -> None:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)

            self._try(f"delete {key}", ask)

    def leftovers(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Yield unfinished files that killed writers left in a directory; buckets list none."""
        for folder, _, names in os.walk(self.folder) if self.folder else ():
            for name in names:
                if _UNFINISHED.search(name):
                    path = Path(folder, name)
                    with suppress(FileNotFoundError):  # its writer may have just finished
                        yield path, path.stat()

    def _try(self, what: str, ask: Callable[[], T]) -> T:
        """Call `ask` with retries; obstore itself retries only some errors."""
        trial = _Attempts()
        while True:
            try:
                done = ask()
            except (BaseError, OSError) as error:
                self._pause(what, error, trial)
            else:
                self._progress()
                return done

    def _progress(self) -> _Attempts:
        """Note a success: the time for giving up starts again."""
        self._is_down = False
        return _Attempts()

    def _pause(self, what: str, error: Exception, trial: _Attempts) -> None:
        """Wait before a retry; raise if a retry does not help or the time is up.

        After that, each operation is tried once only, until one succeeds.
        """
        if not self._is_transient(error):
            raise unreachable(self.url, what, error) from error
        if self._is_down or time.monotonic() - trial.began > PATIENCE:
            self._is_down = True
            raise unreachable(self.url, what, error) from error
        trial.attempt += 1
        spread = random.uniform(0.5, 1)  # noqa: S311 - only to spread
        time.sleep(spread * min(5.0, 0.1 * 2**trial.attempt))

    def _is_transient(self, error: Exception) -> bool:
        """Return whether an error may be transient; errors of a disk are not."""
        if isinstance(error, AlreadyExistsError | FileExistsError):
            return True
        final = isinstance(error, NotSupportedError | FileNotFoundError)
        return self.folder is None and not final and not _FINAL.search(str(error))


def _credentials() -> "S3Config":
    """Return the credentials that were moved out of the environment, where obstore would look."""
    hidden = {name.lower(): value for name, value in taken().items() if name not in os.environ}
    return cast("S3Config", hidden)


def _make_newer(path: Path, before: os.stat_result) -> None:
    """Set a file's mtime to at least the next second after its predecessor's.

    Web servers make ETags of second and size, and clients cache by them.
    """
    oldest = int(before.st_mtime) + 1
    if path.stat().st_mtime < oldest:
        os.utime(path, (oldest, oldest))


def _meta(found: "obstore.ObjectMeta") -> ObjectMeta:
    return ObjectMeta(found["path"], found["size"], found["last_modified"], found["e_tag"] or "")
