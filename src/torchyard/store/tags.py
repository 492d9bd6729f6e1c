"""Tags, the ETags by which objects are swapped, and digests of files."""

import hashlib
from functools import partial
from pathlib import Path

_md5 = partial(hashlib.md5, usedforsecurity=False)


def content_tag(data: bytes) -> str:
    """Return the ETag that S3 gives to an object written in one piece, without a KMS key.

    On a server with other ETags, a swap that expects this one fails: the writer must request it.
    """
    return f'"{_md5(data).hexdigest()}"'


def file_tag(path: Path) -> str | None:
    """Return the tag of a file, or None if there is none."""
    try:
        with path.open("rb") as file:
            return f'"{hashlib.file_digest(file, _md5).hexdigest()}"'
    except FileNotFoundError:
        return None


def file_digest_of(path: Path) -> str | None:
    """Return the sha256 of a file, or None if there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
