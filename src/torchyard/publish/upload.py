"""Packages and what belongs beside them, into a channel: bytes that no page names yet."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import PublishError
from torchyard.index.page import Media
from torchyard.model.quantity import show_size
from torchyard.package.zip.inflate import Progress, ignore_progress
from torchyard.publish.channel.layout import headers, key_of, parse_part
from torchyard.publish.staged import METADATA, PROVENANCE, Package
from torchyard.store.objects import CHUNK, LARGEST_COPY, Objects

_SMALL = 8 << 20
"""Up to this size a file is sent at once, which costs one request whether it is there or not."""

FILES = 4
"""The number of packages sent at a time."""


class _Pieces:
    """The bytes of a file. They end in an error if they are not those that it once had.

    So a file that is modified meanwhile never gets a name that belongs to other bytes.
    """

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self.digest = digest

    def __iter__(self) -> Iterator[bytes]:
        found = sha256()
        with self.path.open("rb") as file:
            while piece := file.read(CHUNK):
                found.update(piece)
                yield piece
        if found.hexdigest() != self.digest:
            msg = f"`{self.path}` was changed while it was being published"
            raise PublishError(msg, hint="publish it again when no program writes to it")


class _Object(NamedTuple):
    key: str
    sending: str
    """Where it is sent to first; its key, if that belongs to its bytes."""
    data: bytes | _Pieces
    media: Media


def upload(
    objects: Objects, packages: Iterable[Package], progress: Progress = ignore_progress
) -> None:
    """Send packages and their sidecars, several at once; what is there stays as it is."""

    def send(package: Package) -> None:
        for one in _objects(package):
            while not _send(objects, one):
                if one.sending == one.key or _is_same(objects, one.key, package):
                    break
        progress(package.entry.size)

    with ThreadPoolExecutor(FILES) as pool:
        list(pool.map(send, packages))


def restore(objects: Objects, packages: Iterable[Package]) -> None:
    """Send the objects again that were deleted since they were sent or found."""

    def send(one: _Object) -> None:
        if objects.head(one.key) is None:
            _send(objects, one)

    with ThreadPoolExecutor(FILES) as pool:
        list(pool.map(send, (one for package in packages for one in _objects(package))))


def keys_of(package: Package) -> list[str]:
    """Where a package and what is beside it are in a channel."""
    return [one.key for one in _objects(package)]


def _objects(package: Package) -> Iterator[_Object]:
    part = parse_part(package.part)
    key = key_of(part, package.entry)
    sending = part.rules.upload_key(key, package.entry.sha256)
    yield _Object(key, sending, _Pieces(package.path, package.entry.sha256), Media.BYTES)
    if package.metadata:
        sidecar = f"{key}{METADATA}"
        yield _Object(sidecar, sidecar, package.metadata, Media.TEXT)
    if package.provenance:
        sidecar = f"{key}{PROVENANCE}"
        yield _Object(sidecar, sidecar, package.provenance, Media.JSON)


def _send(objects: Objects, one: _Object) -> bool:
    """Write an object if there is none; tell whether it is ours.

    A large one is sent in parts: under its own name if that belongs to its bytes, as two who do so
    write the same; else under one that does, to be renamed when all of it is there.
    """
    is_named = one.sending == one.key
    said = headers(one.media, "bytes" if is_named else "name")
    if isinstance(one.data, bytes):
        return objects.create(one.key, one.data, said)
    size = one.data.path.stat().st_size
    if size <= _SMALL:
        return objects.create(one.key, b"".join(one.data), said)
    if objects.head(one.key) is not None:
        return False
    if is_named:
        objects.write(one.key, one.data, said)
        return True
    if size > LARGEST_COPY and objects.folder is None:
        msg = f"`{one.data.path.name}` has {show_size(size)}, which is too large for a bucket"
        raise PublishError(msg, hint=f"split it: S3 renames up to {show_size(LARGEST_COPY)}")
    objects.write(one.sending, one.data, said)
    return objects.rename(one.sending, one.key)


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
