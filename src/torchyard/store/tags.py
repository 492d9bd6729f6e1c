"""Tags: what an object is known by when it is to be swapped for another one."""

import hashlib
from functools import partial
from pathlib import Path

_md5 = partial(hashlib.md5, usedforsecurity=False)


def tag_of(data: bytes) -> str:
    """The tag that S3 gives to an object that was written at once, and not under a key of KMS.

    Where a server gives others, a swap that counts on this one fails, and its writer has to ask.
    """
    return f'"{_md5(data).hexdigest()}"'


def file_tag(path: Path) -> str | None:
    """The tag of a file, which is never in memory as a whole."""
    try:
        with path.open("rb") as file:
            return f'"{hashlib.file_digest(file, _md5).hexdigest()}"'
    except FileNotFoundError:
        return None
