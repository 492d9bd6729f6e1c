"""Checks of a source tree: its version, submodules, and leftovers of an earlier build."""

import shlex
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from packaging.version import InvalidVersion, Version

from torchyard.doctor.bench import Bench, is_on
from torchyard.doctor.check import Seen, Trouble, machine_check
from torchyard.doctor.tree import cache_entries, read_tree, stated_version
from torchyard.errors import HostError
from torchyard.host.git import HARMLESS, is_checkout
from torchyard.model.quantity import show_count
from torchyard.model.severity import Severity
from torchyard.toolchain.reading.source_text import empty_folders

_BUILD = "build"
_COMPILERS = ("CMAKE_CXX_COMPILER", "CMAKE_CUDA_COMPILER")
_PYTHONS = ("Python_EXECUTABLE", "PYTHON_EXECUTABLE")
_STALE = "CMake keeps the tools that it found first, whatever is on PATH now"


@machine_check("tree-version", outside=True)
def tree_version(bench: Bench) -> Iterator[Seen | Trouble]:
    """The tree has the version in `[project]`."""
    demand = bench.demand
    if bench.source is None or not demand.version or demand.is_changed:
        return
    found = stated_version(bench.source)
    if _release(found) and _release(found) != _release(demand.version):
        what = f"the tree is version {found}, and `version` of [project] is {demand.version}"
        yield Trouble(what, "packages would be labelled with another version than their code")


def _release(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version: torch's branches have no others."""
    try:
        return (*Version(version).release, 0)[:2]
    except InvalidVersion:
        return ()


@machine_check("submodules", outside=True)
def submodules(bench: Bench) -> Iterator[Seen | Trouble]:
    """Every submodule of the tree has files, and is at the tree's commit."""
    tables = [bench.env, *chain.from_iterable(bench.demand.settings.values())]
    if bench.source is None or any(is_on(table.get("USE_SYSTEM_LIBS", "")) for table in tables):
        return
    left_out = {name.rstrip("/") for name in bench.demand.left_out}
    tree = bench.source
    names = tuple(path for path in read_tree(tree).submodules if path not in left_out)
    empty = list(empty_folders(tree, names))
    cure = f"git -C {shlex.quote(str(tree))} submodule update --init --recursive"
    is_clone = is_checkout(tree)
    if empty:
        what = f"{show_count(len(empty), 'submodule')} of {len(names)} have no files: {empty[0]}"
        if len(empty) > 1:
            what = f"{what} …"
        why = "configuring ends with an error about a missing third_party directory"
        if is_clone:
            yield Trouble(what, why, cure, fixable=True)
        else:
            again = "git clone --recursive https://github.com/pytorch/pytorch"
            yield Trouble(what, why, again if bench.demand.is_torch else "")
        return
    moved = _moved(bench, tree) if is_clone and names else []
    for name in moved:
        yield Trouble(
            f"the submodule {name} is at another commit than the tree names",
            "after a checkout of another release, submodules stay at their old commits",
            cure,
            Severity.WARNING,
            fixable=True,
        )
    if names and not moved:
        yield Seen(show_count(len(names), "submodule"))


def _moved(bench: Bench, tree: Path) -> list[str]:
    """Return the submodules that git reports at another commit."""
    git = bench.which("git")
    if git is None:
        return []
    done = bench.run(git, "-C", tree, "submodule", "status", env={**bench.env, **HARMLESS})
    if done.code:
        return []
    return [line[1:].split()[1] for line in done.lines if line.startswith("+")]


@machine_check("cmake-cache", by_hand=True)
def cmake_cache(bench: Bench) -> Iterator[Seen | Trouble]:
    """The CMakeCache.txt of an earlier build is of this tree, CMake, compiler and Python.

    Removing it makes CMake configure anew; compiled files stay.
    """
    if bench.source is None:
        return
    build = bench.source / _BUILD
    entries = cache_entries(build)
    if not entries:
        return
    changed = list(_changes(bench, entries))
    stale = shlex.join(str(build / name) for name in ("CMakeCache.txt", "CMakeFiles"))
    for what in changed:
        yield Trouble(what, _STALE, f"rm -r {stale}", fixable=True)
    if not changed:
        yield Seen(f"{build}/CMakeCache.txt is of these tools")


def _changes(bench: Bench, entries: dict[str, str]) -> Iterator[str]:
    """Yield differences between a cache and the current tools."""
    home = entries.get("CMAKE_HOME_DIRECTORY", "")
    assert bench.source is not None  # noqa: S101 - the caller has one
    if home and Path(home).resolve() != bench.source.resolve():
        yield f"{_BUILD}/CMakeCache.txt is of the tree {home}"
    generator = entries.get("CMAKE_GENERATOR", "")
    wanted = bench.env.get("CMAKE_GENERATOR", "Ninja")
    if generator and generator != wanted:
        yield f"{_BUILD} was configured for {generator}, and now it would be {wanted}"
    for name in _COMPILERS:
        program = entries.get(name, "")
        if program.startswith("/") and not Path(program).exists():
            yield f"{_BUILD}/CMakeCache.txt has {name} {program}, which no longer exists"
    try:
        now = Path(bench.compiler.cxx)
    except HostError:
        now = None
    before = entries.get(_COMPILERS[0], "")
    if now and before and Path(before).exists() and Path(before).resolve() != now.resolve():
        yield f"{_BUILD} was configured for the compiler {before}, and now it would be {now}"
    python = next(filter(None, map(entries.get, _PYTHONS)), "")
    try:
        running = Path(bench.environment.program)
    except HostError:
        return
    if python and not _is_same_python(python, running):
        yield f"{_BUILD} was configured for {python}, and Python is {running}"


def _is_same_python(before: str, now: Path) -> bool:
    """Return whether two programs are the same Python; links of other environments are not."""
    old = Path(before)
    return old.exists() and (old.parent.resolve(), old.resolve()) == (
        now.parent.resolve(),
        now.resolve(),
    )
