"""Changes of packages."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Literal

from torchyard.checks.checked import CheckedPackage, findings_error
from torchyard.checks.text import packages_text
from torchyard.errors import CheckError
from torchyard.model.quantity import show_size
from torchyard.model.values import Reported
from torchyard.package.repair.draft import MemberChange
from torchyard.terminal.tables import Lines, verbatim
from torchyard.terminal.untrusted import printable


class RepairedPackage(Reported, kw_only=True):
    """A package and its repaired form; `debug` has separated debug information.

    Members have their old names. `notes` list impossible and remaining changes.
    """

    source: str
    path: str
    bytes: int
    debug: str | None
    changes: Sequence[MemberChange]
    notes: Sequence[str]


class RepairReport(Reported, kw_only=True):
    """`torchyard repair --json`: `check` is about the new packages; null with `--no-check`."""

    version: Literal[1] = 1
    packages: list[RepairedPackage]
    check: list[CheckedPackage] | None


def repair_text(report: RepairReport) -> str | Lines:
    """List the changes; without a check as plain text, because rich takes longer than the work."""
    lines = [line for package in report.packages for line in _lines(package)]
    if report.check is None:
        return "".join(f"{line}\n" for line in lines)
    return chain(map(verbatim, lines), [""], packages_text(report.check))


def repair_error(report: RepairReport) -> CheckError | None:
    return findings_error(report.check or ())


def _lines(package: RepairedPackage) -> Iterator[str]:
    yield f"{printable(package.path)}  {show_size(package.bytes)}"
    if not package.changes:
        yield "  nothing had to be changed: it is a copy"
    rows = [(printable(change.member), printable(change.what)) for change in package.changes]
    width = max((len(member) for member, _ in rows), default=0)
    for member, what in rows:
        yield f"  {member:{width}}  {what}"
    for note in package.notes:
        yield f"  note: {printable(note)}"
    if package.debug:
        yield f"  debug information is in {package.debug}"
