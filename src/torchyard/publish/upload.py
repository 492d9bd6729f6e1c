"""Upload packages and their sidecars to a channel, before any page names them."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

from torchyard.errors import PublishError
from torchyard.index.page import Media
from torchyard.model.quantity import show_size
from torchyard.package.delivered import PROVENANCE, STATEMENT
from torchyard.package.zip.inflate import Progress, ignore_progress
from torchyard.publish.channel.layout import headers, key_of, parse_part
from torchyard.publish.staged import METADATA, Package
from torchyard.store.objects import CHUNK, LARGEST_COPY, SMALL, Identity, Objects

FILES = 4
"""The number of packages to send at once."""


class _Pieces:
    """The bytes of a file, which end in an error if the file has changed.

    So a file modified meanwhile never gets a name derived from other bytes.
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
            raise PublishError(msg, hint="publish it again once no program writes to it")


class _Object(NamedTuple):
    key: str
    data: bytes | _Pieces
    identity: Identity
    media: Media
    is_own: bool = True
    """Whether the key is derived from the bytes, so that other bytes at it are damage."""
    sending: str = ""
    """The temporary key of a large conda package."""


def upload(
    objects: Objects, packages: Iterable[Package], progress: Progress = ignore_progress
) -> None:
    """Send packages and their sidecars, several at once, except complete existing objects."""

    def send(package: Package) -> None:
        for item in _objects(package):
            _send(objects, item)
        progress(package.entry.size)

    with ThreadPoolExecutor(FILES) as pool:
        list(pool.map(send, packages))


def restore(objects: Objects, packages: Iterable[Package]) -> None:
    """Send objects again that were deleted or truncated since they were sent or found."""

    def send(item: _Object) -> None:
        if not objects.holds(item.key, item.identity):
            _send(objects, item)

    with ThreadPoolExecutor(FILES) as pool:
        list(pool.map(send, (item for package in packages for item in _objects(package))))


def keys_of(package: Package) -> list[str]:
    """Return the keys of a package and its sidecars in a channel."""
    return [item.key for item in _objects(package)]


def holds_all(objects: Objects, package: Package) -> bool:
    """Return whether a channel has a package and its sidecars."""
    return all(
        objects.holds(o.key, o.identity) if o.is_own else objects.head(o.key) is not None
        for o in _objects(package)
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
    if data := package.statement:
        yield _Object(f"{key}{STATEMENT}", data, _identity(data), Media.JSON, is_own=False)


def _identity(data: bytes) -> Identity:
    return Identity(len(data), sha256(data).hexdigest())


def _send(objects: Objects, item: _Object) -> None:
    """Write an object, unless it exists.

    At a key not derived from its bytes, the first object stays: another conda package is refused,
    another provenance or statement ignored. A truncated object is replaced.
    """
    if item.is_own:
        objects.ensure(item.key, item.data, item.identity, headers(item.media, "bytes"))
        return
    while not _create(objects, item):
        match _found(objects, item):
            case "same":
                return
            case "cut off":
                objects.delete([item.key])
            case "gone":
                pass
            case "other" if isinstance(item.data, bytes):
                return
            case "other":
                msg = f"the channel has another `{item.key}`, with other bytes"
                hint = "files are never replaced: give it another build number"
                raise PublishError(msg, hint=hint)


def _create(objects: Objects, item: _Object) -> bool:
    """Write an object unless its name exists; return whether it is ours.

    A large object is sent in parts under a name derived from its bytes, and renamed when complete.
    """
    sent = headers(item.media, "name")
    if isinstance(item.data, bytes):
        return objects.create(item.key, item.data, sent)
    size = item.data.path.stat().st_size
    if size <= SMALL:
        return objects.create(item.key, b"".join(item.data), sent)
    if objects.head(item.key) is not None:
        return False
    if size > LARGEST_COPY and objects.folder is None:
        msg = f"`{item.data.path.name}` has {show_size(size)}, which is too large for a bucket"
        raise PublishError(msg, hint=f"split it: S3 renames up to {show_size(LARGEST_COPY)}")
    objects.write(item.sending, item.data, sent)
    return objects.rename(item.sending, item.key)


def _found(objects: Objects, item: _Object) -> Literal["same", "cut off", "other", "gone"]:
    """Compare the object at a key with the expected one."""
    size = 0
    is_cut = False
    mine = BytesIO(item.data) if isinstance(item.data, bytes) else item.data.path.open("rb")
    with mine:
        try:
            for piece in objects.stream(item.key):
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
    return "cut off" if is_cut or size < item.identity.size else "same"
