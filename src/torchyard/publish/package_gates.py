"""The gates for one package: it is that of its cell, it has no errors, and it works."""

from collections.abc import Iterable, Iterator
from functools import cache

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchyard.checks.cell import cell_names
from torchyard.checks.rule import Severity
from torchyard.errors import Diagnostic
from torchyard.publish.evidence import Evidence
from torchyard.publish.staged import Package


def refused_packages(
    packages: Iterable[Package], cells: frozenset[str], evidence: Evidence
) -> Iterator[Diagnostic]:
    """Packages that a gate refuses; `cells` are those of the plan."""
    for package in packages:
        yield from _misplaced(package)
        if not package.entry.cell and is_planned(package, cells):
            yield _unknown(package)
        yield from _unproven(package)
        yield from _untried(package, evidence)


def is_planned(package: Package, cells: frozenset[str]) -> bool:
    """Return whether a package has the name and version of some cell of a plan."""
    return (package.name, _public(package.entry.version)) in _releases(cells)


@cache
def _releases(cells: frozenset[str]) -> frozenset[tuple[str, str]]:
    """The names, normalised and not, and versions that packages of cells may have."""
    return frozenset(
        (spelt, _public(cell.partition("/")[0].rpartition("-")[2]))
        for cell in cells
        for name in cell_names(cell)
        for spelt in (name, canonicalize_name(name))
    )


def _public(version: str) -> str:
    """A version without its local part."""
    try:
        return Version(version).public
    except InvalidVersion:
        return version


def _misplaced(package: Package) -> Iterator[Diagnostic]:
    """Refuse a package that is not the one of the cell whose job delivered it."""
    for mismatch in package.mismatches:
        what = f"`{package.entry.file}` is not the package that its job was to make: {mismatch}"
        yield Diagnostic(what, None, "correct the steps of stage `package`")


def _unknown(package: Package) -> Diagnostic:
    """Refuse a package of the plan's project that no job is known to have made."""
    what = f"it is not known which cell of the plan `{package.entry.file}` belongs to"
    hint = "publish what `torchyard build` made, with the store that has it"
    return Diagnostic(what, None, hint)


def _unproven(package: Package) -> Iterator[Diagnostic]:
    """Refuse a package in which `check` finds errors."""
    errors = [found for found in package.findings if found.severity is Severity.ERROR]
    if errors:
        first = errors[0]
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        what = f"`{package.entry.file}` has errors: {first.what} [{first.rule}]{more}"
        yield Diagnostic(what, None, f"`torchyard check {package.path}` lists all")


def _untried(package: Package, evidence: Evidence) -> Iterator[Diagnostic]:
    """Refuse a package of a plan whose smoke job has not succeeded."""
    for cell in package.cells:
        if cell not in evidence.finished:
            what = f"`{package.entry.file}` has not passed its smoke test"
            yield Diagnostic(what, None, f"`torchyard build smoke:{cell}` runs it")
