"""Downloads from another index: verified on arrival, and resumed after interruptions."""

import hashlib
from collections.abc import Callable
from errno import EFBIG
from pathlib import Path
from typing import NamedTuple

from torchyard.errors import PublishError
from torchyard.host.fetcher import Fetcher
from torchyard.host.http import LARGEST_FILE, redact_url
from torchyard.index.simple.read import FileLink
from torchyard.publish.index_check.files import strong_hash

_CHUNK = 1 << 20


class Fetched(NamedTuple):
    """A downloaded file that matches its index."""

    path: Path
    sha256: str
    size: int


def fetch_link(
    fetcher: Fetcher, link: FileLink, folder: Path, heard: Callable[[int], None]
) -> Fetched:
    """Download a file into a separate folder; resume a partial download.

    If a resumed file is wrong, download it again from the start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / link.file
    hashed = strong_hash(link.hashes)
    if hashed is None:  # a partial file could not be verified
        path.unlink(missing_ok=True)
    begun = path.exists()
    fetched = _fetch(fetcher, link, path, heard)
    if fetched is None and begun:
        fetched = _fetch(fetcher, link, path, heard)
    if fetched is None:
        msg = f"`{link.file}` does not match its index: another hash or size, or no end"
        raise PublishError(msg, hint=f"report it to the operator of {redact_url(link.url)}")
    return fetched


def _fetch(
    fetcher: Fetcher, link: FileLink, path: Path, heard: Callable[[int], None]
) -> Fetched | None:
    """Download the rest of a file; remove it if it is wrong.

    Keep at most the size that the index or the server declares, or else the size limit of packages.
    """
    most = min(LARGEST_FILE if link.size is None else link.size, LARGEST_FILE)
    kind, digits = strong_hash(link.hashes) or ("sha256", "")
    digest, sha256 = hashlib.new(kind), hashlib.sha256()
    with path.open("ab+") as file:
        file.seek(0)
        while piece := file.read(_CHUNK):
            digest.update(piece)
            sha256.update(piece)
        size = file.tell()
        try:
            for piece in fetcher.pieces(link.url, size, most) if size != link.size else ():
                file.write(piece)
                file.flush()
                digest.update(piece)
                sha256.update(piece)
                size += len(piece)
                heard(len(piece))
        except FileNotFoundError as error:
            msg = f"`{link.file}` is not at its index's address"
            raise PublishError(
                msg, hint=f"report it to the operator of {redact_url(link.url)}"
            ) from error
        except OSError as error:
            if error.errno != EFBIG:
                raise
            size = most + 1
    if size > most or (digest.hexdigest() != digits and digits) or size != (link.size or size):
        path.unlink()
        return None
    return Fetched(path, sha256.hexdigest(), size)
