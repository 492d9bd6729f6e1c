"""Packages and what belongs beside them, into a channel: bytes that no page names yet."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from torchyard.errors import PublishError
from torchyard.index.page import Media
from torchyard.package.inflate import Progress, nobody
from torchyard.publish.shelves import headers, key_of, parse_part
from torchyard.publish.staged import METADATA, PROVENANCE, Package
from torchyard.store.objects import CHUNK, Objects

_SMALL = 8 << 20
"""Up to this size a file is sent at once, which costs one request whether it is there or not."""

FILES = 4
"""So many packages are on their way at a time."""

_ALONE = Lock()
"""A large file that is sent at once is in memory, twice: one is enough."""


class _Pieces:
    """The bytes of a file. They end in an error if they are not those that it once had.

    So what somebody writes to meanwhile never gets a name that belongs to other bytes.
    """

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self._digest = digest

    def __iter__(self) -> Iterator[bytes]:
        found = sha256()
        with self.path.open("rb") as file:
            while piece := file.read(CHUNK):
                found.update(piece)
                yield piece
        if found.hexdigest() != self._digest:
            msg = f"`{self.path}` was changed while it was being published"
            raise PublishError(msg, hint="publish it again when nobody writes to it")


class _Object(NamedTuple):
    key: str
    data: bytes | _Pieces
    media: Media


def upload(objects: Objects, packages: Iterable[Package], progress: Progress = nobody) -> None:
    """Send packages and their sidecars, several at once; what is there stays as it is."""

    def send(package: Package) -> None:
        for one in _objects(package):
            while not _send(objects, one):
                if not package.part.startswith("conda/") or _is_same(objects, one.key, package):
                    break
        progress(package.entry.size)

    with ThreadPoolExecutor(FILES) as pool:
        list(pool.map(send, packages))


def restore(objects: Objects, packages: Iterable[Package]) -> None:
    """Send again what somebody has deleted since it was sent, or found to be there."""

    def send(one: _Object) -> None:
        if objects.head(one.key) is None:
            _send(objects, one)

    with ThreadPoolExecutor(FILES) as pool:
        list(pool.map(send, (one for package in packages for one in _objects(package))))


def keys_of(package: Package) -> list[str]:
    """Where a package and what is beside it are in a channel."""
    return [one.key for one in _objects(package)]


def _objects(package: Package) -> Iterator[_Object]:
    key = key_of(parse_part(package.part), package.entry)
    yield _Object(key, _Pieces(package.path, package.entry.sha256), Media.BYTES)
    if package.metadata:
        yield _Object(f"{key}{METADATA}", package.metadata, Media.TEXT)
    if package.provenance:
        yield _Object(f"{key}{PROVENANCE}", package.provenance, Media.JSON)


def _send(objects: Objects, one: _Object) -> bool:
    """Write an object if there is none; tell whether it is ours.

    One whose name belongs to its bytes can be sent in parts: two who do so write the same.
    """
    said = headers(one.media, "bytes" if one.key.startswith("packages/") else "name")
    if isinstance(one.data, bytes):
        return objects.create(one.key, one.data, said)
    if one.data.path.stat().st_size <= _SMALL:
        return objects.create(one.key, b"".join(one.data), said)
    if not one.key.startswith("packages/"):
        with _ALONE:
            return objects.create(one.key, b"".join(one.data), said)
    if objects.head(one.key) is not None:
        return False
    objects.write(one.key, one.data, said)
    return True


def _is_same(objects: Objects, key: str, package: Package) -> bool:
    """Refuse to go on if other bytes are where ours should be; False if they have just gone."""
    there = sha256()
    try:
        for piece in objects.stream(key):
            there.update(piece)
    except FileNotFoundError:
        return False
    if there.hexdigest() != package.entry.sha256:
        msg = f"the channel has another `{key}`, with other bytes"
        raise PublishError(msg, hint="nothing is ever written over: give it another build number")
    return True
