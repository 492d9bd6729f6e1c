"""Marks of the files that torchyard writes, which keep them out of every source."""

import re
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.files import HOME
from torchyard.version import __version__

STAMP = ".torchyard-stamp"
"""The file that marks a directory of torchyard, with everything below it."""

WRITTEN = f"Written by torchyard {__version__}"
"""The first words of torchyard's pages and files, in a comment."""

SECRET = "torchyard-secret-"  # noqa: S105 - a prefix
"""The first bytes of every password and key that torchyard generates."""

HEAD = 256
"""The number of bytes that show whether a file is torchyard's."""

_OWN_FILE = re.compile(
    rb"""
    (?: \#\  | (?: <!doctype\ html>\s* )? <!--\  | \{"generator":" )  # CI, lock; page; trace
    Written\ by\ torchyard\ \d
    | \{\s* "version":\s* \d+, \s* "torchyard":\s* "                  # a report as JSON
    """,
    re.VERBOSE,
)


def is_own_file(head: bytes) -> bool:
    """Return whether a file with these first bytes was written by torchyard."""
    return _OWN_FILE.match(head) is not None


def refuse_secret(head: bytes, path: object) -> None:
    """Refuse a file with the first bytes of torchyard's secrets."""
    if head.startswith(SECRET.encode()):
        msg = f"`{path}` is a secret of torchyard, which can't be part of a source or result"
        raise HostError(msg, hint="move it out of the source, and do not copy it in a step")


def make_own_directory(folder: Path) -> None:
    """Create a directory for torchyard's files; stamp a new or empty one.

    A directory with other files may be a project's, and those in a home need no stamp.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if HOME not in folder.parts and not any(folder.iterdir()):
        stamp_directory(folder)


def stamp_directory(folder: Path) -> None:
    """Mark a directory as torchyard's, to keep it out of every source."""
    text = f"{WRITTEN}: this directory is no part of any source.\n"
    (folder / STAMP).write_text(text, encoding="utf-8")
