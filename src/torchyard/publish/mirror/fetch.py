"""Fetching files of another index: verified while they come, and continued where they broke off."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import PublishError
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import redact_url
from torchyard.index.simple.read import Link
from torchyard.publish.index_check.files import strong_hash

_CHUNK = 1 << 20


class Fetched(NamedTuple):
    """A file that is here, and is what its index says."""

    path: Path
    sha256: str
    size: int


def fetch_link(fetcher: Fetcher, link: Link, folder: Path, heard: Callable[[int], None]) -> Fetched:
    """Fetch a file into a folder of its own. What is there of it already is not fetched again.

    A file that was begun earlier and comes out wrong is fetched once more from its beginning.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / link.file
    hashed = strong_hash(link.hashes)
    if hashed is None:  # what is there can't be verified, so it is of no use
        path.unlink(missing_ok=True)
    begun = path.exists()
    fetched = _fetch(fetcher, link, path, heard)
    if fetched is None and begun:
        fetched = _fetch(fetcher, link, path, heard)
    if fetched is None:
        msg = f"`{link.file}` is not what its index says: its bytes have another hash or size"
        raise PublishError(msg, hint=f"tell those who run {redact_url(link.url)}")
    return fetched


def _fetch(
    fetcher: Fetcher, link: Link, path: Path, heard: Callable[[int], None]
) -> Fetched | None:
    """Fetch the rest of a file; one that is wrong is removed."""
    kind, digits = strong_hash(link.hashes) or ("sha256", "")
    digest, sha256 = hashlib.new(kind), hashlib.sha256()
    with path.open("ab+") as file:
        file.seek(0)
        while piece := file.read(_CHUNK):
            digest.update(piece)
            sha256.update(piece)
        size = file.tell()
        try:
            for piece in fetcher.pieces(link.url, size) if size != link.size else ():
                file.write(piece)
                file.flush()
                digest.update(piece)
                sha256.update(piece)
                size += len(piece)
                heard(len(piece))
                if link.size is not None and size > link.size:
                    break
        except FileNotFoundError as error:
            msg = f"`{link.file}` is not where its index says"
            raise PublishError(msg, hint=f"tell those who run {redact_url(link.url)}") from error
    if (digest.hexdigest() != digits and digits) or size != (link.size or size):
        path.unlink()
        return None
    return Fetched(path, sha256.hexdigest(), size)
