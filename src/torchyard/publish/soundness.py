"""Wheels that are taken as they are: whether they can be unpacked in one way, to one place."""

from pathlib import Path

from torchyard.errors import CheckError, PublishError
from torchyard.package.zip.unpack import plain_directory


def refuse_unsound(path: Path) -> None:
    """Raise PublishError if a wheel has members that lead elsewhere, links, or is ambiguous.

    Only the list of its members is read.
    """
    try:
        with path.open("rb") as file:
            plain_directory(path.name, file)
    except CheckError as error:
        msg = f"{error} (`torchyard check` says more)"
        raise PublishError(msg, hint="leave it out: no installer should unpack it") from error
