"""The one door to obstore: named objects, in a directory or a bucket.

Names are never written twice with different bytes, so every operation here can be repeated.
"""

import errno
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError
from obstore.store import LocalStore, S3Store

from torchyard.errors import ElsewhereError, SelectionError, UsageError

CHUNK = 1 << 20
_ATTEMPTS = 5
_PLACES = "file:///…, s3://BUCKET/… or a directory"
_PAGE = 1000

T = TypeVar("T")


class Meta(NamedTuple):
    """What a store says about an object without reading it."""

    key: str
    size: int
    modified: datetime
    tag: str


class Objects:
    """The objects of one store."""

    def __init__(self, url: str, *, make: bool = True) -> None:
        """Open a store; a directory that is not there is made, unless there has to be one."""
        self.url = url
        self.folder = _folder_of(url)
        self._store: LocalStore | S3Store = (
            self._open_bucket()
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
            raise ElsewhereError(msg) from error
        return LocalStore(folder)

    def _open_bucket(self) -> S3Store:
        """Open a bucket; where the server is and who we are comes from AWS's own variables."""
        try:
            return S3Store.from_url(
                self.url,
                client_options={
                    "allow_http": True,
                    "connect_timeout": timedelta(seconds=5),
                    "timeout": timedelta(seconds=60),
                },
                retry_config={"max_retries": 6, "retry_timeout": timedelta(seconds=60)},
            )
        except BaseError as error:
            msg = f"`{self.url}` is no place for a store: {_plain(error)}"
            raise UsageError(msg, hint=_PLACES) from error

    def head(self, key: str) -> Meta | None:
        def ask() -> Meta | None:
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

        A stream that breaks off is not taken up again: whoever reads it starts anew.
        """
        what = f"read {key}"
        try:
            for piece in obstore.get(self._store, key).stream(min_chunk_size=CHUNK):
                yield bytes(piece)
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            raise self._unreachable(what, error) from error

    def create(self, key: str, data: bytes | Path) -> bool:
        """Write an object if there is none of that name; tell whether it is ours.

        A writer whose answer got lost finds its own bytes there when it tries again.
        """

        def ask() -> bool:
            try:
                obstore.put(self._store, key, data, mode="create")
            except (AlreadyExistsError, FileExistsError):
                return isinstance(data, bytes) and self.read(key) == data
            return True

        return self._try(f"create {key}", ask)

    def write(self, key: str, data: bytes | Path) -> None:
        """Write an object, over an older one of the same name if there is one."""
        self._try(f"write {key}", lambda: obstore.put(self._store, key, data))

    def list(self, prefix: str) -> Iterator[Meta]:
        """Every object below a prefix. A listing that breaks off goes on behind its last name.

        Buckets list in order; a directory does not, but does not break off either.
        """
        last: str | None = None
        attempt = 1
        while True:
            try:
                for page in obstore.list(self._store, prefix, offset=last, chunk_size=_PAGE):
                    for found in map(_meta, page):
                        last = found.key
                        yield found
            except (BaseError, OSError) as error:
                self._pause(f"list {prefix}", error, attempt)
                attempt += 1
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
                if "#" in name:
                    path = Path(folder, name)
                    yield path, path.stat()

    def _try(self, what: str, ask: Callable[[], T]) -> T:
        """Try again what may work then; obstore itself repeats only some of it."""
        attempt = 1
        while True:
            try:
                return ask()
            except (BaseError, OSError) as error:
                self._pause(what, error, attempt)
                attempt += 1

    def _pause(self, what: str, error: Exception, attempt: int) -> None:
        """Wait before something is tried again; give up if that has no use."""
        if attempt == _ATTEMPTS or not self._may_pass(error):
            raise self._unreachable(what, error) from error
        time.sleep(random.uniform(0.5, 1) * 0.1 * 2**attempt)  # noqa: S311 - only to spread

    def _may_pass(self, error: Exception) -> bool:
        """Whether an error can be gone in a second; what a disk refuses, it refuses again."""
        return self.folder is None and not isinstance(
            error, NotSupportedError | PermissionError | FileNotFoundError
        )

    def _unreachable(self, what: str, error: Exception) -> ElsewhereError:
        reason = _plain(error)
        msg = f"the store `{self.url}` could not {what}: {reason}"
        if f"(os error {errno.ENOSPC})" in reason:
            return ElsewhereError(msg, hint="make room: `torchyard store gc`", reason="disk")
        hint = "is it in reach, and may we do that there?"
        return ElsewhereError(msg, hint=hint, reason="network")


def _folder_of(url: str) -> Path | None:
    """The directory that an address means; None for a bucket."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme not in ("file", "s3"):
        msg = f"`{url}` is no place for a store"
        raise UsageError(msg, hint=_PLACES)
    if scheme == "file" and separator and not rest.startswith("/"):
        msg = f"`{url}` names a host, not a directory"
        raise UsageError(msg, hint=f"write file:///{rest}, or only {rest}")
    return None if separator and scheme == "s3" else Path(rest if separator else url).absolute()


def _plain(error: Exception) -> str:
    """What obstore says, without what only its authors want to know."""
    return str(error).partition("\n\nDebug source")[0].strip()


def _meta(found: "obstore.ObjectMeta") -> Meta:
    return Meta(found["path"], found["size"], found["last_modified"], found["e_tag"] or "")
