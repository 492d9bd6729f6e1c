"""How much of a package is believed and kept, whatever it says of itself."""

from collections.abc import Iterable

from torchyard.model.values import Value
from torchyard.package.contents import Fault, FaultKind


class Limits(Value, kw_only=True):
    """Sizes in bytes. What goes beyond one of them is a fault, and is not read."""

    directory: int = 32 << 20
    """The list of members at the end of a zip archive."""
    members: int = 100_000
    total: int = 64 << 30
    """All members, unpacked."""
    ratio: int = 250
    """How many times its stored size a member may unpack to, if it is larger than `harmless`."""
    harmless: int = 64 << 20
    text: int = 16 << 20
    """A member that is kept."""
    texts: int = 64 << 20
    """All members that are kept."""
    table: int = 32 << 20
    """The dynamic symbols of a library, and their names."""
    tables: int = 256 << 20
    """The names of the symbols of all libraries."""
    foreign: int = 2 << 30
    """A Mach-O or PE file."""
    faults: int = 1000


LIMITS = Limits()


class Faults:
    """Collects what is wrong; after so many, the rest is only counted."""

    def __init__(self, most: int = LIMITS.faults, known: Iterable[Fault] = ()) -> None:
        self._most = most
        self._found = list(known)
        self._more = 0

    def add(self, kind: FaultKind, member: str, what: str) -> None:
        if len(self._found) < self._most:
            self._found.append(Fault(kind, member, what))
        else:
            self._more += 1

    def all(self) -> tuple[Fault, ...]:
        if not self._more:
            return tuple(self._found)
        rest = Fault(FaultKind.STRUCTURE, "", f"there are {self._more} more faults")
        return (*self._found, rest)
