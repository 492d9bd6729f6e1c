"""Limits for reading packages, regardless of declared sizes."""

from collections.abc import Iterable

from torchyard.model.values import Value
from torchyard.package.contents import Fault, FaultKind


class Limits(Value, kw_only=True):
    """Sizes in bytes. Exceeding one is a fault, and stops reading."""

    directory: int = 32 << 20
    """The list of members at the end of a zip archive."""
    members: int = 100_000
    total: int = 64 << 30
    """All unpacked members."""
    ratio: int = 250
    """Maximum ratio of a member's unpacked to its stored size, if it is larger than `harmless`."""
    harmless: int = 64 << 20
    text: int = 16 << 20
    """A kept member."""
    texts: int = 64 << 20
    """All kept members."""
    table: int = 64 << 20
    """The dynamic symbols of a library, and their names."""
    tables: int = 256 << 20
    """The names of the symbols of all libraries."""
    foreign: int = 2 << 30
    """A Mach-O or PE file."""
    faults: int = 1000

    def most(self, stored: int) -> int:
        """Return the maximum unpacked size for a stored size."""
        return max(self.harmless, stored * self.ratio)


LIMITS = Limits()


class Faults:
    """Collects faults up to a limit; a last one reports that there are more."""

    def __init__(self, most: int = LIMITS.faults, known: Iterable[Fault] = ()) -> None:
        self._most = most
        self._found = list(known)

    def add(self, kind: FaultKind, member: str, what: str) -> None:
        if len(self._found) <= self._most:
            self._found.append(Fault(kind, member, what))

    def all(self) -> tuple[Fault, ...]:
        if len(self._found) <= self._most:
            return tuple(self._found)
        more = Fault(FaultKind.STRUCTURE, "", "there are more faults than listed")
        return (*self._found[: self._most], more)
