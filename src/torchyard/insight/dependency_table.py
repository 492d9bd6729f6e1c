"""The table `data/dependencies.toml`: where dependencies' versions are written."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import Literal

from packaging.utils import canonicalize_name

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.values import Value

_NAME = "dependencies.toml"


class TreePattern(Value, kw_only=True):
    """Globs of files in a tree, and an expression whose groups are a version.

    `required` versions bind a build; others are used by upstream's CI.
    """

    files: tuple[str, ...]
    pattern: str
    required: bool = False


class TablePattern(Value, kw_only=True):
    """A data file of torchyard, and its part about a torch release.

    `row` selects the release's section, or the newest that is not newer; without it, the whole file
    counts. Without a pattern, the file lists Python packages.
    """

    file: str
    row: Literal["", "same", "newest"] = ""
    part: str = ""
    pattern: str = ""


class RequirementFiles(Value, kw_only=True):
    """Globs of files in a tree that list Python packages."""

    required: tuple[str, ...]
    pinned: tuple[str, ...]


class DependencyRule(Value, kw_only=True):
    """A dependency: its aliases, and where its version is written."""

    pip: tuple[str, ...] | None = None
    conda: str = ""
    submodule: str = ""
    several: bool = False
    tree: tuple[TreePattern, ...] = ()
    tables: tuple[TablePattern, ...] = ()


class DependencyTable(Value, kw_only=True):
    """The whole table."""

    files: RequirementFiles
    listed: tuple[TablePattern, ...]
    dependencies: dict[str, DependencyRule]

    def rule(self, name: str) -> DependencyRule:
        """Return the rule of a dependency, or the default one."""
        return self.dependencies.get(name, DependencyRule())

    def pip_names(self) -> dict[str, str]:
        """Return the dependency of each distribution."""
        return {
            str(canonicalize_name(other)): name
            for name, rule in self.dependencies.items()
            for other in ((name,) if rule.pip is None else rule.pip)
        }


@cache
def dependency_table() -> DependencyTable:
    """Return the table, which is read once."""
    return parse_dependency_table(read_data(_NAME))


def parse_dependency_table(text: str) -> DependencyTable:
    """Parse the table, and fail with the first of its problems."""
    return parse_table(_NAME, text, DependencyTable, _problems)


def _problems(table: DependencyTable) -> Iterator[str]:
    owners: dict[str, str] = {}
    globs = [*table.files.required, *table.files.pinned]
    for name, rule in table.dependencies.items():
        for other in (name,) if rule.pip is None else rule.pip:
            owner = owners.setdefault(str(canonicalize_name(other)), name)
            if owner != name:
                yield f"gives the package {other} to {owner} and to {name}"
        patterns = [row.pattern for row in rule.tree] + [row.pattern for row in rule.tables]
        globs += [glob for row in rule.tree for glob in row.files]
        globs += [rule.submodule] if rule.submodule else []
        for pattern in patterns:
            yield from _pattern_problems(name, pattern)
    for glob in globs:
        path = PurePosixPath(glob)
        if path.is_absolute() or ".." in path.parts:
            yield f"has the path `{glob}`, which is not in a tree"


def _pattern_problems(name: str, pattern: str) -> Iterator[str]:
    try:
        if not re.compile(pattern).groups:
            yield f"has a pattern of {name} without a group for the version: {pattern}"
    except re.error as error:
        yield f"has a pattern of {name} that is no regular expression: {error}"
