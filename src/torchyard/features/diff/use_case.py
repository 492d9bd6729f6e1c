"""Compare two packages."""

from pathlib import Path

from torchyard.checks.compare import PackageDiff, compare_packages
from torchyard.errors import CheckError
from torchyard.package.contents import Contents, FaultKind
from torchyard.workspace.progress import Meter, no_meter, read_metered


def diff_packages(before: str | Path, after: str | Path, *, meter: Meter = no_meter) -> PackageDiff:
    """Return the differences between two packages, which may have different formats."""
    return compare_packages(_whole(Path(before), meter), _whole(Path(after), meter))


def _whole(path: Path, meter: Meter) -> Contents:
    """Read a package; refuse a truncated one, whose missing files would look removed."""
    contents = read_metered(path, meter)
    for kind, member, what in contents.faults:
        if kind in {FaultKind.STRUCTURE, FaultKind.BOMB}:
            where = f"{member} " if member else ""
            msg = f"`{path.name}` can't be compared: {where}{what}"
            raise CheckError(msg, hint="`torchyard check` lists what is wrong with it")
    return contents
