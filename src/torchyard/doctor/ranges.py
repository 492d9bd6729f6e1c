"""Which versions of a program a build takes: what its tree says, and the table of releases."""

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion

from torchyard.doctor.bench import Bench
from torchyard.doctor.table import machine_table
from torchyard.doctor.tree import python_range, read_tree


def range_of(bench: Bench, program: str) -> str:
    """Return the range as a specifier; the tree's own minimum replaces that of the table."""
    row = machine_table().ranges_for(bench.demand.release)
    listed = {"cmake": row.cmake, "gcc": row.gcc, "clang": row.clang, "python": row.python}
    bounds = [str(one) for one in SpecifierSet(listed[program])]
    stated = _stated(bench, program)
    if stated:
        bounds = [one for one in bounds if not one.startswith(">")] + stated
    return ",".join(sorted(bounds, reverse=True))


def _stated(bench: Bench, program: str) -> list[str]:
    """Return what the tree itself says; nothing if that is no range."""
    if bench.source is None:
        return []
    own = read_tree(bench.source).oldest.get(program, "")
    text = python_range(bench.source) if program == "python" else own and f">={own}"
    try:
        return [str(one) for one in SpecifierSet(text)]
    except InvalidSpecifier:
        return []


def is_in_range(version: str, specifier: SpecifierSet | str) -> bool:
    """Return whether a version is in a range; one that is no version is in none."""
    try:
        return bool(version) and SpecifierSet(str(specifier)).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False
