"""Repair packages, and write only what is not worse than before."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from torchyard.errors import CheckError
from torchyard.host.locks import locked
from torchyard.host.own_files import make_own_directory
from torchyard.model.quantity import show_count
from torchyard.package.repair.operations import Operation
from torchyard.package.repair.repair import Repaired, repair, repair_target
from torchyard.workspace.progress import Meter, no_meter

if TYPE_CHECKING:
    from torchyard.checks.rule import Finding
    from torchyard.reports.check.document import CheckDocument, PackageDocument

_MOST_ERRORS = 3
"""How many new errors a refusal names; further ones are only counted."""


def repair_packages(
    packages: Sequence[Path],
    operations: Sequence[Operation],
    out: Path,
    *,
    compute: str = "",
    policy: str | None = "default",
    meter: Meter = no_meter,
) -> "tuple[list[Repaired], CheckDocument | None]":
    """Apply operations to packages, and check what was made, unless the policy is None.

    Packages get their names in the directory only when all of them are made and checked. If one
    would have more errors than it came with, CheckError is raised and nothing is written.
    """
    targets = [repair_target(path, operations, out) for path in packages]
    make_own_directory(out)
    with _scratch(targets[0]) as scratch:
        made = [repair(path, operations, scratch, compute=compute) for path in packages]
        found = None
        if policy is not None:
            found = _checked(packages, [one.path for one in made], policy, meter)
        return [_placed(*pair) for pair in zip(made, targets, strict=True)], found


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """Yield an empty directory beside a package; what a killed process left there is removed."""
    folder, lock = (target.with_name(f".{target.name}{end}") for end in (".repair", ".lock"))
    with locked(lock, wait=True):
        rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            rmtree(folder, ignore_errors=True)
            lock.unlink()


def _checked(
    before: Sequence[Path], after: Sequence[Path], policy: str, meter: Meter
) -> "CheckDocument":
    """Check packages; refuse them if one has more errors than before."""
    from torchyard.app.check import check_packages

    found = check_packages(after, policy=policy, digests=False, meter=meter)
    if found.findings["error"]:
        were = check_packages(before, policy=policy, digests=False, meter=meter)
        for old, new in zip(were.packages, found.packages, strict=True):
            _refuse_worse(old, new)
    return found


def _placed(made: Repaired, target: Path) -> Repaired:
    """Move a package, and its debug information, to its place."""
    debug = made.debug.replace(target.with_name(made.debug.name)) if made.debug else None
    return made._replace(path=made.path.replace(target), debug=debug)


def _refuse_worse(old: "PackageDocument", new: "PackageDocument") -> None:
    """Raise CheckError if a package has more errors than the one that it was made of."""
    had, has = (_errors(document) for document in (old, new))
    if len(has) <= len(had):
        return
    known = Counter(finding.rule for finding in had)
    grown = Counter(finding.rule for finding in has) - known
    said = {(finding.rule, finding.member, finding.what) for finding in had}
    fresh = [f for f in has if f.rule in grown and (f.rule, f.member, f.what) not in said]
    listed = "; ".join(f"{f.rule}: {f.member} {f.what}" for f in fresh[:_MOST_ERRORS])
    more = len(fresh) - _MOST_ERRORS
    count = show_count(len(has), "error")
    msg = (
        f"`{new.file}` would have {count} where `{old.file}` has {len(had)}, so nothing was "
        f"written. New: {listed}{f'; and {more} more' if more > 0 else ''}"
    )
    hint = "change fewer files (--members), or write it nevertheless: --no-check"
    raise CheckError(msg, hint=hint)


def _errors(document: "PackageDocument") -> "list[Finding]":
    return [finding for finding in document.findings if finding.severity == "error"]
