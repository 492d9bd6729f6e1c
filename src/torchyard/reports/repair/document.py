"""What `torchyard repair --json` prints."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from torchyard.model.values import Reported
from torchyard.package.repair.repair import Repaired
from torchyard.reports.check.document import CheckDocument


class RepairChangeDocument(Reported, kw_only=True):
    """What was done to a member, which is named as it was before."""

    member: str
    what: str


class RepairedDocument(Reported, kw_only=True):
    """A package and what was made of it; `debug` has debug information that was taken out.

    `notes` say what could not be done, or is left to do.
    """

    source: str
    path: str
    bytes: int
    debug: str | None
    changes: list[RepairChangeDocument]
    notes: list[str]


class RepairDocument(Reported, kw_only=True):
    """`torchyard repair --json`: `check` is about what was made; none with `--no-check`."""

    version: Literal[1] = 1
    packages: list[RepairedDocument]
    check: CheckDocument | None


def repair_document(
    repaired: Iterable[tuple[Path, Repaired]], check: CheckDocument | None
) -> RepairDocument:
    return RepairDocument(
        check=check,
        packages=[
            RepairedDocument(
                source=str(source),
                path=str(done.path),
                bytes=done.path.stat().st_size,
                debug=str(done.debug) if done.debug else None,
                changes=[RepairChangeDocument(member=c.member, what=c.what) for c in done.changed],
                notes=list(done.notes),
            )
            for source, done in repaired
        ],
    )
