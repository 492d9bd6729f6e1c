"""The one door to obstore: named objects, in a directory or a bucket.

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
from torchyard.store.places import PLACES, bucket_of, folder_of, path_of
from torchyard.store.refusals import plain_message, unreachable
from torchyard.store.tags import file_tag, tag_of

if TYPE_CHECKING:
    from obstore.store import S3Config

SILENCE = 30.0
"""Seconds without a byte of an answer after which a request counts as lost."""

PATIENCE = 60.0
"""Seconds after which a store that does nothing but fail is given up."""

CHUNK = 1 << 20
LOCK = ".lock"
"""The file in a directory that is locked while an object there is swapped."""

LARGEST_COPY = 5 << 30
"""Bytes of an object that S3 copies, or takes in one piece, at most."""

_PAGE = 1000
_UPLOADS = 4
"""Parts of one file on their way at a time: on a slow line, more would all seem lost."""

_FINAL = re.compile(r"status code: 40[1345]\b")
"""How obstore says that a server refused, and would do so again."""

_UNFINISHED = re.compile(r"#\d+$")
"""How obstore calls a file until all of it is there."""

Headers = Mapping[str, str]
"""What a server says of an object to those who read it: `Content-Type`, `Cache-Control`."""

NO_HEADERS: Headers = MappingProxyType({})

T = TypeVar("T")


class ObjectMeta(NamedTuple):
    """What a store says about an object without reading it."""

    key: str
    size: int
    modified: datetime
    tag: str


class _Trial:
    """How often, and since when, something has been tried in vain."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.attempt = 0


class Objects:
    """The objects of one store."""

    def __init__(self, url: str, *, make: bool = True) -> None:
        """Open a store; a directory that is not there is made, unless there has to be one."""
        self.url = url
        self.folder = folder_of(url)
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
        """Open a bucket; where the server is and who we are comes from AWS's own variables."""
        if "@" in bucket_of(url):
            msg = f"`{url}` holds a name or a password, which logs and results would tell"
            raise UsageError(msg, hint="let AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY say it")
        try:
            return S3Store.from_url(
                url,
                config={"copy_if_not_exists": "header:if-none-match:*", **_identity()},
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
        """Read a small object whole; None if there is none."""

        def ask() -> bytes | None:
            try:
                return bytes(obstore.get(self._store, key).bytes())
            except FileNotFoundError:
                return None

        return self._try(f"read {key}", ask)

    def stream(self, key: str) -> Iterator[bytes]:
        """Read an object piece by piece; FileNotFoundError if there is none.

        A stream that breaks off goes on behind its last byte.
        """
        at, size = 0, -1
        trial = _Trial()
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
        """Read a small object, and the tag that it can be swapped by."""
        if self.folder is not None:
            data = self.read(key)
            return None if data is None else (data, tag_of(data))

        def ask() -> tuple[bytes, str] | None:
            try:
                found = obstore.get(self._store, key)
            except FileNotFoundError:
                return None
            return bytes(found.bytes()), found.meta["e_tag"] or ""

        return self._try(f"read {key}", ask)

    def tag(self, key: str) -> str | None:
        """The tag that an object can be swapped by; None if there is none."""
        if self.folder is not None:
            return self._try(f"read {key}", partial(file_tag, self.folder / key))
        meta = self.head(key)
        return None if meta is None else meta.tag

    def create(self, key: str, data: bytes | Path, headers: Headers = NO_HEADERS) -> bool:
        """Write an object if there is none of that name; tell whether it is ours.

        A writer whose answer got lost finds its own bytes there when it tries again.
        """

        def ask() -> bool:
            try:
                obstore.put(
                    self._store, key, data, mode="create", attributes=self._attributes(headers)
                )
            except (AlreadyExistsError, FileExistsError):
                if self.head(key) is None:
                    raise  # another one failed, or what was there is deleted: once more
                return isinstance(data, bytes) and self.read(key) == data
            return True

        return self._try(f"create {key}", ask)

    def swap(self, key: str, data: bytes, tag: str | None, headers: Headers = NO_HEADERS) -> bool:
        """Write an object over the one with this tag, or where none is; tell whether it worked.

        Of two that try, one fails. As with `create`, a writer whose answer got lost has its way.
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
                return found == tag or found == tag_of(data)

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
        """Write an object, over an older one of the same name if there is one.

        Pieces are asked for anew when it is tried again; if they end in an error, nothing is there.
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
        """Give an object a name that no other has; tell whether it worked. The old name is gone.

        It does not, either, if there is no such object: somebody else may have renamed it.
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
        """Let a server copy an object of another store; False if it has not both of them."""
        bucket = bucket_of(self.url)
        if self.folder is not None or source.folder is not None:
            return False
        if bucket_of(source.url) != bucket:
            return False
        whole = self._open_bucket(f"s3://{bucket}")

        def ask() -> None:
            obstore.copy(whole, path_of(source.url, key), path_of(self.url, key))

        self._try(f"copy {key}", ask)
        return True

    def _attributes(self, headers: Headers) -> "obstore.Attributes | None":
        """What a bucket is to say with an object; a directory can't say anything."""
        return dict(headers) if headers and self.folder is None else None

    def list(self, prefix: str) -> Iterator[ObjectMeta]:
        """Every object below a prefix. A listing that breaks off goes on behind its last name.

        Buckets list in order; a directory does not, but does not break off either.
        """
        last: str | None = None
        trial = _Trial()
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
        """Remove objects; those that are not there are no concern."""
        for key in keys:

            def ask(key: str = key) -> None:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)

            self._try(f"delete {key}", ask)

    def leftovers(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Files that writers to a directory were killed over; buckets show no such thing."""
        for folder, _, names in os.walk(self.folder) if self.folder else ():
            for name in names:
                if _UNFINISHED.search(name):
                    path = Path(folder, name)
                    with suppress(FileNotFoundError):  # its writer may have just ended well
                        yield path, path.stat()

    def _try(self, what: str, ask: Callable[[], T]) -> T:
        """Try again what may work then; obstore itself repeats only some of it."""
        trial = _Trial()
        while True:
            try:
                done = ask()
            except (BaseError, OSError) as error:
                self._pause(what, error, trial)
            else:
                self._progress()
                return done

    def _progress(self) -> _Trial:
        """Something worked: patience begins anew."""
        self._is_down = False
        return _Trial()

    def _pause(self, what: str, error: Exception, trial: _Trial) -> None:
        """Wait before something is tried again; give up if that has no use.

        A store that was given up is asked once, for whatever comes next, until it answers.
        """
        if not self._may_pass(error):
            raise unreachable(self.url, what, error) from error
        if self._is_down or time.monotonic() - trial.began > PATIENCE:
            self._is_down = True
            raise unreachable(self.url, what, error) from error
        trial.attempt += 1
        spread = random.uniform(0.5, 1)  # noqa: S311 - only to spread
        time.sleep(spread * min(5.0, 0.1 * 2**trial.attempt))

    def _may_pass(self, error: Exception) -> bool:
        """Whether an error can be gone in a second; what a disk refuses, it refuses again."""
        if isinstance(error, AlreadyExistsError | FileExistsError):
            return True
        final = isinstance(error, NotSupportedError | FileNotFoundError)
        return self.folder is None and not final and not _FINAL.search(str(error))


def _identity() -> "S3Config":
    """Who we are, as far as it was taken out of the environment, where obstore would look."""
    hidden = {name.lower(): value for name, value in taken().items() if name not in os.environ}
    return cast("S3Config", hidden)


def _make_newer(path: Path, before: os.stat_result) -> None:
    """Let a file be a second newer than the one before it, if that was of the same second.

    Web servers tell files apart by the second and the size, and clients keep what did not change.
    """
    oldest = int(before.st_mtime) + 1
    if path.stat().st_mtime < oldest:
        os.utime(path, (oldest, oldest))


def _meta(found: "obstore.ObjectMeta") -> ObjectMeta:
    return ObjectMeta(found["path"], found["size"], found["last_modified"], found["e_tag"] or "")
