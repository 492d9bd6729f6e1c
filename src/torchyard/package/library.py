"""Reading a single program or library outside of a package."""

from collections.abc import Iterator
from pathlib import Path

from torchyard.errors import HostError
from torchyard.package.contents import Binary
from torchyard.package.limits import LIMITS, Faults
from torchyard.package.members import FoundMembers, MemberReader

_PIECE = 1 << 20


def read_library(path: Path) -> Binary:
    """Read a file like a member of a package."""
    found = FoundMembers(LIMITS, Faults())
    try:
        member = MemberReader(found, path.name, path.stat().st_size)
        for piece in _pieces(path):
            member.feed(piece)
        binary = member.finish(lambda: _pieces(path))
    except OSError as error:
        msg = f"`{path}` can't be read: {error.strerror}"
        raise HostError(msg, hint="check its name and your permissions") from error
    if binary is None:
        why = "".join(f": it {fault.what}" for fault in found.faults.all())
        msg = f"`{path}` is no program or library{why}"
        raise HostError(msg, hint="name a .so, .pyd, .dll or .dylib file, or a wheel")
    return binary


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
