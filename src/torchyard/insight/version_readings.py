"""Versions of dependencies in files, with their lines."""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchyard.host.files import data_path, read_data
from torchyard.insight.dependency_table import DependencyTable, TablePattern, TreePattern
from torchyard.model.values import Reported
from torchyard.model.version import version_numbers
from torchyard.toolchain.reading.source_text import read_beginning

GITMODULES = ".gitmodules"
_OPERATOR = r"(?:===?|~=|!=|<=|>=|<|>)"
_BOUND = rf"{_OPERATOR}[ \t]*\d[\w.*+!-]*"
_NAME = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?(?:\[[\w, -]*\])?"
_PIN = re.compile(
    rf"(?<![\w./$\{{-])(?P<name>{_NAME})[ \t]*(?P<bounds>{_BOUND}(?:[ \t]*,[ \t]*{_BOUND})*)"
    r"(?:[ \t]*;(?P<marker>[^|#\n]*))?"
)
_LINE = re.compile(
    rf"[ \t]*(?:Requires-Dist:[ \t]*)?(?P<quote>[\"']?)(?P<name>{_NAME})[ \t]*"
    rf"\(?(?P<bounds>(?:{_BOUND}(?:[ \t]*,[ \t]*{_BOUND})*)?)\)?[ \t]*(?:;(?P<marker>.*?))?"
    r"(?P=quote),?[ \t]*"
)
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_HEADER = re.compile(r'^\["?(?P<row>[\d.]+)"?(?:\.(?P<part>\w+))?\]$', re.MULTILINE)
_LONGEST = 1000
"""The longest version or requirement to accept."""
_PLAIN = ("", ".txt")
_QUOTED = (".py", ".toml")


class ReadFrom(StrEnum):
    """Where a version was read."""

    TREE = "tree"
    RECIPE = "recipe"
    TABLES = "tables"
    CHANNEL = "channel"
    INDEX = "index"
    CONDA = "conda"


class VersionReading(Reported, kw_only=True):
    """A version or range of a dependency, at a line of a file.

    `required` means that it binds, `ahead` that commits follow the version. An empty version is any
    or an unknown version.
    """

    dependency: str
    read_from: ReadFrom
    version: str
    file: str
    line: int = 0
    marker: str = ""
    commit: str = ""
    required: bool = False
    ahead: bool = False

    @property
    def where(self) -> str:
        """The file and the line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def exact(self) -> Version | None:
        """The version, or None for a range or an invalid version."""
        text = self.version.removeprefix("===").removeprefix("==").strip()
        try:
            return Version(text)
        except InvalidVersion:
            return None

    @property
    def bounds(self) -> SpecifierSet | None:
        """The range, or None for a single version or an invalid range."""
        try:
            return SpecifierSet(self.version) if self.version and self.exact is None else None
        except InvalidSpecifier:
            return None

    def __str__(self) -> str:
        shown = self.version if self.exact is None else self.version.removeprefix("==")
        nothing = "unknown" if self.file == GITMODULES else "any"
        return f"{shown}{'+' * self.ahead}" or self.commit[:10] or nothing


def read_tree_versions(tree: Path, table: DependencyTable) -> Iterator[VersionReading]:
    """Yield the versions in files of a tree, except submodules: see `read_submodules`."""
    for globs, required in ((table.files.required, True), (table.files.pinned, False)):
        for path in _files(tree, globs):
            name = path.relative_to(tree).as_posix()
            yield from requirements_in(
                read_beginning(path), name, ReadFrom.TREE, table.pip_names(), required=required
            )
    for dependency, rule in table.dependencies.items():
        for pattern in rule.tree:
            yield from _matches(tree, dependency, pattern)


def _matches(tree: Path, dependency: str, pattern: TreePattern) -> Iterator[VersionReading]:
    for path in _files(tree, pattern.files):
        for version, line in find_versions(pattern.pattern, read_beginning(path)):
            yield VersionReading(
                dependency=dependency,
                read_from=ReadFrom.TREE,
                version=version,
                file=path.relative_to(tree).as_posix(),
                line=line,
                required=pattern.required,
            )


def _files(tree: Path, globs: Iterable[str]) -> Iterator[Path]:
    """Yield the files that globs match, each once; skip links that lead out of the tree."""
    top = tree.resolve()
    found = dict.fromkeys(path for glob in globs for path in sorted(tree.glob(glob)))
    yield from (path for path in found if path.is_file() and path.resolve().is_relative_to(top))


def find_versions(pattern: str, text: str, start: int = 0) -> Iterator[tuple[str, int]]:
    """Yield the versions that an expression finds, with their line numbers."""
    for found in re.finditer(pattern, text, re.MULTILINE):
        version = ".".join(filter(None, found.groups()))
        if len(version) > _LONGEST:
            continue
        yield version, start + text.count("\n", 0, found.start(1)) + 1


def requirements_in(  # noqa: PLR0913 - what, from where, and what of it
    text: str,
    file: str,
    read_from: ReadFrom,
    names: Mapping[str, str],
    *,
    required: bool = False,
    start: int = 0,
) -> Iterator[VersionReading]:
    """Yield the Python packages that a file lists.

    Args:
        text: The file.
        file: Its name; the ending tells whether a line can be a requirement by itself.
        read_from: Where it is.
        names: The dependency of each wanted distribution.
        required: Whether the file's requirements bind.
        start: The number of lines before the text.
    """
    suffix = Path(file).suffix if "METADATA" not in file else ""
    for number, whole in enumerate(text.splitlines(), start + 1):
        line = _COMMENT.sub("", whole)
        alone = _LINE.fullmatch(line) if suffix in (*_PLAIN, *_QUOTED) else None
        if alone and suffix in _QUOTED and not alone["quote"]:
            alone = None
        if alone and suffix == "" and ":" in whole and "Requires-Dist:" not in whole:
            alone = None
        for found in [alone] if alone else _PIN.finditer(line):
            if len(found[0]) > _LONGEST:
                continue
            name = str(canonicalize_name(found["name"].partition("[")[0]))
            if name in names or (alone and required and (suffix in _PLAIN or found["bounds"])):
                yield VersionReading(
                    dependency=names.get(name, name),
                    read_from=read_from,
                    version="".join(found["bounds"].split()),
                    file=file,
                    line=number,
                    marker=_plain_marker(found["marker"] or ""),
                    required=required,
                )


def _plain_marker(text: str) -> str:
    """Return a marker with one kind of quotes, and without the rest of its line."""
    plain = " ".join(text.replace("'", '"').rstrip(",\\ \t").split())
    return plain.removesuffix('"') if plain.count('"') % 2 else plain


def read_table_versions(release: str, table: DependencyTable) -> Iterator[VersionReading]:
    """Yield the versions in torchyard's tables for a torch release."""
    for pattern in table.listed:
        for file in _table_files(pattern.file):
            text, start = _part(read_data(file), pattern, release)
            yield from requirements_in(
                text, _shown(file), ReadFrom.TABLES, table.pip_names(), start=start
            )
    for dependency, rule in table.dependencies.items():
        for pattern in rule.tables:
            text, start = _part(read_data(pattern.file), pattern, release)
            for version, line in find_versions(pattern.pattern, text, start):
                yield VersionReading(
                    dependency=dependency,
                    read_from=ReadFrom.TABLES,
                    version=version,
                    file=_shown(pattern.file),
                    line=line,
                )


def _shown(file: str) -> str:
    return f"torchyard/data/{file}"


def _table_files(glob: str) -> list[str]:
    top = Path(data_path("."))
    return sorted(path.relative_to(top).as_posix() for path in top.glob(glob))


def _part(text: str, pattern: TablePattern, release: str) -> tuple[str, int]:
    """Return the part of a table about a release, and the number of lines before it."""
    if not pattern.row:
        return text, 0
    headers = [found for found in _HEADER.finditer(text) if (found["part"] or "") == pattern.part]
    wanted = version_numbers(release)
    fitting = [
        found
        for found in headers
        if (numbers := version_numbers(found["row"])) == wanted
        or (pattern.row == "newest" and wanted and numbers < wanted)
    ]
    if not fitting:
        return "", 0
    begin = max(fitting, key=lambda found: version_numbers(found["row"])).end()
    following = re.compile(r"^\[", re.MULTILINE).search(text, begin)
    end = following.start() if following else len(text)
    return text[begin:end], text.count("\n", 0, begin)
