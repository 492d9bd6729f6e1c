"""The versions of a program that a build accepts: from its tree, and the releases' table."""

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from torchyard.doctor.bench import Bench
from torchyard.doctor.table import machine_table
from torchyard.doctor.tree import python_range, read_tree


def range_of(bench: Bench, program: str) -> str:
    """Return the range as a specifier; the tree's minimum replaces the table's."""
    row = machine_table().ranges_for(bench.demand.release)
    listed = {"cmake": row.cmake, "gcc": row.gcc, "clang": row.clang, "python": row.python}
    bounds = [str(bound) for bound in SpecifierSet(listed[program])]
    stated = _stated(bench, program)
    if stated:
        bounds = [bound for bound in bounds if not bound.startswith(">")] + stated
    return ",".join(sorted(bounds, reverse=True))


def _stated(bench: Bench, program: str) -> list[str]:
    """Return the bounds in the tree; none if they are invalid."""
    if bench.source is None:
        return []
    oldest = read_tree(bench.source).oldest.get(program, "")
    text = python_range(bench.source) if program == "python" else oldest and f">={oldest}"
    try:
        return [str(bound) for bound in SpecifierSet(text)]
    except InvalidSpecifier:
        return []


def is_in_range(version: str, specifier: SpecifierSet | str) -> bool:
    """Return whether a version is in a range; an invalid version is in none."""
    try:
        return bool(version) and SpecifierSet(str(specifier)).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False
