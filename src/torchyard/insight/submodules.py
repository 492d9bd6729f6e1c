"""The submodules of a tree: their commits and versions."""

import re
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from torchyard.doctor.tree import SUBMODULE_PATH
from torchyard.errors import HostError
from torchyard.host.git import is_checkout, read_git
from torchyard.host.snapshot import SUBMODULES
from torchyard.insight.dependency_table import DependencyTable
from torchyard.insight.version_readings import GITMODULES, ReadFrom, VersionReading
from torchyard.toolchain.reading.source_text import read_beginning

_VENDORED = "third_party"
_STATUS = re.compile(
    r"(?P<sign>[ +\-U])(?P<commit>[0-9a-f]{40}) (?P<path>.+?)(?: \((?P<tag>.+)\))?"
)
_ON_TOP = re.compile(r"-\d+-g[0-9a-f]+$")
_LONGEST_TAG = 200
_NUMBERS = re.compile(r"\d+(?:[._]\d+)+(?:[-._]?(?:rc|a|b|alpha|beta)[-._]?\d+)?(?:-\d+)?")


class MovedSubmodule(NamedTuple):
    """A submodule checked out at another commit than the tree's."""

    reading: VersionReading
    named: str


class Submodules(NamedTuple):
    """The submodules of a tree, and those at another commit."""

    readings: tuple[VersionReading, ...]
    moved: tuple[MovedSubmodule, ...] = ()


def read_submodules(tree: Path, table: DependencyTable) -> Submodules:
    """Return the submodules: from git, or torchyard's record, or else only their names."""
    names = {rule.submodule: name for name, rule in table.dependencies.items() if rule.submodule}
    modules = read_beginning(tree / GITMODULES)
    lines = {
        found[1]: modules.count("\n", 0, found.start(1)) + 1
        for found in SUBMODULE_PATH.finditer(modules)
    }

    def reading(path: str, commit: str, tag: str = "", line: int = 0) -> VersionReading:
        version, ahead = tag_version(tag)
        return VersionReading(
            dependency=names.get(path) or _name(path, is_nested=path not in lines),
            read_from=ReadFrom.TREE,
            version=version,
            commit=commit,
            ahead=ahead,
            file=SUBMODULES if line else GITMODULES,
            line=line or lines.get(path, 0),
            required=bool(version),
        )

    if lines and (rows := _status(tree)):
        readings = [reading(row["path"], row["commit"], row["tag"] or "") for row in rows]
        moved = [
            MovedSubmodule(reading, _named(tree, row["path"]))
            for row, reading in zip(rows, readings, strict=True)
            if row["sign"] == "+"
        ]
        return Submodules(tuple(readings), tuple(moved))
    recorded = [
        reading(path.strip(), commit, line=number)
        for number, row in enumerate(read_beginning(tree / SUBMODULES).splitlines(), 1)
        for commit, _, path in [row.partition(" ")]
    ]
    return Submodules(tuple(recorded or (reading(path, "") for path in lines)))


def _name(path: str, *, is_nested: bool) -> str:
    """Return the name of a submodule; a nested one is `protobuf/googletest`."""
    parts = [part.lower() for part in Path(path).parts if part != _VENDORED] or [path]
    return "/".join(parts) if is_nested else parts[-1]


def _status(tree: Path) -> list[re.Match[str]]:
    """Return git's status of submodules; empty if this is no clone, or one git distrusts."""
    if not is_checkout(tree):
        return []
    try:
        status = read_git(tree, "submodule", "status", "--recursive")
    except HostError:
        return []
    return list(filter(None, map(_STATUS.fullmatch, status.splitlines())))


def _named(tree: Path, path: str) -> str:
    """Return a tree's commit for a submodule; "" for a nested one."""
    try:
        fields = read_git(tree, "ls-tree", "HEAD", "--", path).split()
    except HostError:
        return ""
    return fields[2] if len(fields) > 2 else ""  # noqa: PLR2004 - mode, type, commit


def tag_version(tag: str) -> tuple[str, bool]:
    """Return the version in the output of `git describe`, and whether commits follow it."""
    base = _ON_TOP.sub("", tag)
    found = _NUMBERS.search(base[:_LONGEST_TAG])
    if not found:
        return "", False
    try:
        version = Version(found[0].replace("_", "."))
    except InvalidVersion:
        return "", False
    shown = f"{version.base_version}{''.join(map(str, version.pre or ()))}"
    return shown, base != tag or version.post is not None
