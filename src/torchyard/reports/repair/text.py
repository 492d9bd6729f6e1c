"""Repairs of packages, for people; plain text, because rich takes longer than the work."""

from collections.abc import Iterator

from torchyard.model.quantity import show_size
from torchyard.package.repair.repair import Repaired
from torchyard.terminal.untrusted import printable


def repair_report(done: Repaired) -> str:
    """List the changes of a package."""
    return "".join(f"{line}\n" for line in _lines(done))


def _lines(done: Repaired) -> Iterator[str]:
    yield f"{printable(str(done.path))}  {show_size(done.path.stat().st_size)}"
    if not done.changed:
        yield "  nothing had to be changed: it is a copy"
    rows = [(printable(change.member), printable(change.what)) for change in done.changed]
    width = max((len(member) for member, _ in rows), default=0)
    for member, what in rows:
        yield f"  {member:{width}}  {what}"
    for note in done.notes:
        yield f"  note: {printable(note)}"
    if done.debug:
        yield f"  debug information is in {done.debug}"
