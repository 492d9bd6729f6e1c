"""Repairs of packages, for people; plain text, because rich takes longer than the work."""

from collections.abc import Iterator

from torchyard.model.quantity import show_size
from torchyard.package.repair.repair import Repaired


def repair_report(done: Repaired) -> str:
    """List the changes of a package."""
    return "".join(f"{line}\n" for line in _lines(done))


def _lines(done: Repaired) -> Iterator[str]:
    yield f"{done.path}  {show_size(done.path.stat().st_size)}"
    if not done.changed:
        yield "  nothing had to be changed: it is a copy"
    width = max((len(change.member) for change in done.changed), default=0)
    for member, what in done.changed:
        yield f"  {member:{width}}  {what}"
    for note in done.notes:
        yield f"  note: {note}"
    if done.debug:
        yield f"  debug information is in {done.debug}"
