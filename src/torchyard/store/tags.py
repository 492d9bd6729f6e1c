"""Tags: what an object is known by when it is to be swapped for another one."""

import hashlib
from pathlib import Path


def bucket_tag(data: bytes) -> str:
    """The tag that S3 gives to an object that was written at once, and not under a key of KMS.

    Where a server gives others, a swap that counts on this one fails, and its writer has to ask.
    """
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def folder_tag(data: bytes) -> str:
    """The tag of a file in a directory: of all digests, processors are fastest with this one."""
    return hashlib.sha256(data).hexdigest()


def file_tag(path: Path) -> str | None:
    """The same of a file that is there, which is never in memory as a whole."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
