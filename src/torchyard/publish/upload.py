"""Packages and what belongs beside them, into a channel: bytes that no page names yet."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

from torchyard.errors import PublishError
from torchyard.index.page import Media
from torchyard.model.quantity import show_size
from torchyard.package.delivered import PROVENANCE
from torchyard.package.zip.inflate import Progress, ignore_progress
from torchyard.publish.channel.layout import headers, key_of, parse_part
from torchyard.publish.staged import METADATA, Package
from torchyard.store.objects import CHUNK, LARGEST_COPY, SMALL, Identity, Objects

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
    data: bytes | _Pieces
    identity: Identity
    media: Media
    is_own: bool = True
    """Whether the key belongs to these bytes, so that other bytes there are damaged."""
    sending: str = ""
    """Where a large conda package is sent to before it gets its name."""


def upload(
    objects: Objects, packages: Iterable[Package], progress: Progress = ignore_progress
) -> None:
    """Send packages and their sidecars, several at once; what is there and whole stays."""

    def send(package: Package) -> None:
        for one in _objects(package):
            _send(objects, one)
        progress(package.entry.size)

    with ThreadPoolExecutor(FILES) as pool:
        list(pool.map(send, packages))


def restore(objects: Objects, packages: Iterable[Package]) -> None:
    """Send the objects again that were deleted or cut off since they were sent or found."""

    def send(one: _Object) -> None:
        if not objects.holds(one.key, one.identity):
            _send(objects, one)

    with ThreadPoolExecutor(FILES) as pool:
        list(pool.map(send, (one for package in packages for one in _objects(package))))


def keys_of(package: Package) -> list[str]:
    """Where a package and what is beside it are in a channel."""
    return [one.key for one in _objects(package)]


def holds_all(objects: Objects, package: Package) -> bool:
    """Return whether a channel has a package and what is beside it."""
    return all(
        objects.holds(one.key, one.identity) if one.is_own else objects.head(one.key) is not None
        for one in _objects(package)
    )


def _objects(package: Package) -> Iterator[_Object]:
    part, entry = parse_part(package.part), package.entry
    key = key_of(part, entry)
    sending = part.rules.upload_key(key, entry.sha256)
    yield _Object(
        key,
        _Pieces(package.path, entry.sha256),
        Identity(entry.size, entry.sha256),
        Media.BYTES,
        is_own=sending == key,
        sending=sending,
    )
    if data := package.metadata:
        yield _Object(f"{key}{METADATA}", data, _identity(data), Media.TEXT)
    if data := package.provenance:
        yield _Object(f"{key}{PROVENANCE}", data, _identity(data), Media.JSON, is_own=False)


def _identity(data: bytes) -> Identity:
    return Identity(len(data), sha256(data).hexdigest())


def _send(objects: Objects, one: _Object) -> None:
    """Write an object, unless it is there.

    At a key that does not belong to its bytes, the first object stays: another conda package is
    refused, another provenance ignored. One that was cut off is replaced.
    """
    if one.is_own:
        objects.ensure(one.key, one.data, one.identity, headers(one.media, "bytes"))
        return
    while not _create(objects, one):
        match _found(objects, one):
            case "same":
                return
            case "cut off":
                objects.delete([one.key])
            case "gone":
                pass
            case "other" if isinstance(one.data, bytes):
                return
            case "other":
                msg = f"the channel has another `{one.key}`, with other bytes"
                hint = "nothing is ever written over: give it another build number"
                raise PublishError(msg, hint=hint)


def _create(objects: Objects, one: _Object) -> bool:
    """Write an object if there is none of its name; return whether it is ours.

    A large one is sent in parts, under a name that belongs to its bytes, and renamed when it is
    complete.
    """
    sent = headers(one.media, "name")
    if isinstance(one.data, bytes):
        return objects.create(one.key, one.data, sent)
    size = one.data.path.stat().st_size
    if size <= SMALL:
        return objects.create(one.key, b"".join(one.data), sent)
    if objects.head(one.key) is not None:
        return False
    if size > LARGEST_COPY and objects.folder is None:
        msg = f"`{one.data.path.name}` has {show_size(size)}, which is too large for a bucket"
        raise PublishError(msg, hint=f"split it: S3 renames up to {show_size(LARGEST_COPY)}")
    objects.write(one.sending, one.data, sent)
    return objects.rename(one.sending, one.key)


def _found(objects: Objects, one: _Object) -> Literal["same", "cut off", "other", "gone"]:
    """Compare what is at a key with what should be there."""
    size = 0
    is_cut = False
    mine = BytesIO(one.data) if isinstance(one.data, bytes) else one.data.path.open("rb")
    with mine:
        try:
            for piece in objects.stream(one.key):
                size += len(piece)
                own = mine.read(len(piece))
                if piece == own and not is_cut:
                    continue
                rest = piece.rstrip(b"\0")  # a file system may know the size, but not the bytes
                if len(own) < len(piece) or (rest if is_cut else not own.startswith(rest)):
                    return "other"
                is_cut = True
        except FileNotFoundError:
            return "gone"
    return "cut off" if is_cut or size < one.identity.size else "same"
