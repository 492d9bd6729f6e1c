"""How what torchyard writes is recognised, wherever it is: none of it is part of a source."""

import re
from pathlib import Path

from torchyard.errors import HostError
from torchyard.host.files import HOME
from torchyard.version import __version__

STAMP = ".torchyard-stamp"
"""The file in a directory that torchyard made: everything below it is torchyard's."""

WRITTEN = f"Written by torchyard {__version__}"
"""The words that a page or file of torchyard begins with, in a comment."""

SECRET = "torchyard-secret-"  # noqa: S105 - what it begins with
"""The first bytes of every password and key that torchyard makes."""

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
    """Return whether the first bytes of a file are those of a file that torchyard wrote."""
    return _OWN_FILE.match(head) is not None


def refuse_secret(head: bytes, path: object) -> None:
    """Refuse a file whose first bytes are those of a secret that torchyard made."""
    if head.startswith(SECRET.encode()):
        msg = f"`{path}` is a secret that torchyard made, and can't be part of a source or result"
        raise HostError(msg, hint="keep it outside of the source, and let no step copy it")


def make_own_directory(folder: Path) -> None:
    """Make a directory for what torchyard writes; a new or empty one is stamped.

    One that has other files is not, as it may be a project's; and in a home, none has to be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if HOME not in folder.parts and not any(folder.iterdir()):
        stamp_directory(folder)


def stamp_directory(folder: Path) -> None:
    """Mark a directory as torchyard's, which keeps it out of every source."""
    text = f"{WRITTEN}: this directory is no part of any source.\n"
    (folder / STAMP).write_text(text, encoding="utf-8")
