"""The packages installed beside a package, and their libraries."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from torchyard.checks.subject import Subject
from torchyard.compute.table import LibraryRules, WheelRow
from torchyard.config.tables import load_tables
from torchyard.model.matrix import any_match
from torchyard.model.requirement import parse_requirement
from torchyard.package.conda.name import requirement_name
from torchyard.package.conda.table import load_conda_table
from torchyard.package.contents import Binary, Contents
from torchyard.package.formats import format_of, installed_paths, is_split
from torchyard.package.policy import ImportedRow, load_layouts

_DIGEST = re.compile(r"-[0-9a-f]{8}(?=\.so)")
"""The digest in the file name of a vendored library."""

_LINUX = {"os_name": "posix", "platform_system": "Linux", "sys_platform": "linux", "extra": ""}


class Brought(NamedTuple):
    """A library in other packages, any of which suffices."""

    distributions: tuple[str, ...]
    declared: bool


class Siblings:
    """What a package may rely on: its requirements, the tables, and packages checked with it."""

    def __init__(self, subject: Subject) -> None:
        contents = subject.contents
        self.form = format_of(contents)
        self._split = is_split(contents)
        self.requirements = requirements_by_name(contents, _environment(subject))
        self.declared = frozenset((*self.requirements, *_toolkit_wheels(self.requirements)))
        self.given: dict[str, list[Contents]] = {}
        self._paths: dict[str, set[str]] = {}
        for other in subject.others:
            if other.format == contents.format:
                name = distribution_of(other)
                self.given.setdefault(name, []).append(other)
                self._paths.setdefault(name, set()).update(installed_paths(other))
        binaries = (file.binary for file in contents.files.values() if file.binary)
        self._needed = {library for binary in binaries for library in binary.needed}
        self._needed -= {posixpath.basename(name) for name in contents.files}
        self._rows: list[WheelRow] = []
        self._imported: list[ImportedRow] = []
        self._listed = _listed_packages() if self._split else {}
        if self.form.IN_ENVIRONMENT:
            name = distribution_of(contents)
            given = {*self.given, name}  # their files are known without the tables
            layouts = load_layouts()
            self._rows = [row for row in layouts.wheels if row.distribution not in given]
            self._imported = [r for r in layouts.imported if r.distribution != name]

    def at(self, folder: str, library: str) -> Brought | None:
        """Return the packages that bring a library to a folder, or None."""
        names = [name for name in self.given if self._is_given(name, f"{folder}/{library}")]
        names += [
            row.distribution
            for row in self._rows
            if row.folder == folder and any_match(library, row.libraries)
        ]
        if not names and (owner := self._owner(folder)):
            names.append(owner)
        if not names and self._split and folder == "lib":
            return self._in_prefix(library)
        return self._brought(names)

    def _in_prefix(self, library: str) -> Brought | None:
        """Return the known packages that bring a library to a conda prefix."""
        listed = self._brought(
            [name for name, sonames in self._listed.items() if any_match(library, sonames)]
        )
        if self.trusts_dependencies and not (listed and listed.declared):
            return Brought(tuple(sorted(self.requirements)), declared=True)
        return listed

    def _owner(self, folder: str) -> str:
        """Return the required wheel, with unknown files, that may own a folder, or "".

        Its name starts with the folder's: `metatensor` may belong to metatensor-core.
        """
        if not self.form.IN_ENVIRONMENT:
            return ""
        name = canonicalize_name(folder.partition("/")[0])
        names = {*self.given, *(row.distribution for row in self._rows)}
        names.update(row.distribution for row in self._imported)
        begun = [name_ for name_ in self.requirements if f"{name_}-".startswith(f"{name}-")]
        return "" if name in names else next((name_ for name_ in begun if name_ not in names), "")

    def imported(self, library: str) -> Brought | None:
        """Return the packages whose import has already loaded a library, or None."""
        brought = self._brought([r.distribution for r in self._imported if self._has(r, library)])
        rows = [row for row in self._imported if self._is_imported(row)]
        return brought or self._brought([r.distribution for r in rows if self._needs(r, library)])

    def _is_imported(self, row: ImportedRow) -> bool:
        """Return whether a wheel is required, or else one of its libraries is needed."""
        is_needed = any(any_match(library, row.libraries) for library in self._needed)
        return is_needed or row.distribution in self.declared

    def _has(self, row: ImportedRow, library: str) -> bool:
        if row.distribution in self.given:
            return self._is_given(row.distribution, f"{row.folder}/{library}")
        return any_match(library, row.libraries)

    def _needs(self, row: ImportedRow, library: str) -> bool:
        """Return whether importing a wheel also loads a library as one of its dependencies."""
        binaries = (
            f.binary for c in self.given.get(row.distribution, ()) for f in c.files.values()
        )
        if row.distribution in self.given:
            return any(binary is not None and library in binary.needed for binary in binaries)
        return any_match(library, row.needed)

    def _is_given(self, name: str, path: str) -> bool:
        """Return whether any package of this name that is checked together has a file."""
        return path in self._paths[name]

    def anywhere(self, library: str) -> list[WheelRow]:
        """Return the wheels in the tables with a library, in any folder."""
        return [row for row in self._rows if any_match(library, row.libraries)]

    @cached_property
    def libraries(self) -> dict[str, Binary]:
        """The libraries of required packages that are checked together, by file name."""
        return {
            posixpath.basename(name): file.binary
            for distribution, packages in self.given.items()
            if distribution in self.requirements
            for other in packages
            for name, file in other.files.items()
            if file.binary is not None
        }

    @property
    def trusts_dependencies(self) -> bool:
        """Whether unchecked dependencies of a conda package may bring further libraries.

        Python itself brings none for other packages, and those of the packages in
        `data/conda.toml` are known.
        """
        covered = {*self.given, *self._listed, "python", "python-abi"}
        return bool(self.requirements.keys() - covered)

    def _brought(self, names: list[str]) -> Brought | None:
        if not names:
            return None
        declared = tuple(name for name in names if name in self.declared)
        return Brought(declared or tuple(dict.fromkeys(names)), bool(declared))


@lru_cache(maxsize=1)
def siblings_of(subject: Subject) -> Siblings:
    """Return the siblings of a package, computed once for all rules."""
    return Siblings(subject)


def without_digest(library: str) -> str:
    """Return the name of a vendored library without its digest."""
    return _DIGEST.sub("", library)


@cache
def is_vendors(library: str) -> bool:
    """Return whether a library is in a vendor's wheel, in any folder, even if renamed."""
    plain = without_digest(library)
    return any(any_match(plain, row.libraries) for row in load_layouts().wheels)


def distribution_of(contents: Contents) -> str:
    """Return the normalised name in a package's file name."""
    return format_of(contents).distribution(contents.file_name)


def requirements_by_name(
    contents: Contents, environment: Mapping[str, str] = _LINUX
) -> dict[str, Requirement]:
    """Return a package's requirements on Linux, by normalised names, without extras."""
    found: dict[str, Requirement] = {}
    for line in format_of(contents).requirements(contents):
        try:
            requirement = parse_requirement(line)
            marker = requirement.marker
            holds = marker is None or marker.evaluate(dict(environment))
        except ValueError:
            continue  # another rule reports malformed METADATA
        if holds:
            name = canonicalize_name(requirement.name)
            if name in found:
                requirement.extras |= found[name].extras
            found[name] = requirement
    return found


@cache
def _listed_packages() -> dict[str, tuple[str, ...]]:
    """Return the known sonames in packages of conda channels, by normalised names."""
    listed: dict[str, tuple[str, ...]] = {}
    for row in load_conda_table().libraries:
        name = canonicalize_name(requirement_name(row.package))
        listed[name] = (*listed.get(name, ()), *row.sonames)
    return listed


def _environment(subject: Subject) -> dict[str, str]:
    """Return the known marker values for the package's environment."""
    environment = dict(_LINUX)
    python = subject.expected.python
    if python.startswith("cp") and python[2:3] == "3" and python[3:].isdigit():
        environment["python_version"] = f"3.{python[3:]}"
    machines = {tag.rpartition("linux_")[2] for tag in subject.expected.platforms}
    machines = {"x86_64" if m.endswith("x86_64") else m.rpartition("_")[2] for m in machines}
    if len(machines) == 1:
        environment["platform_machine"] = machines.pop()
    return environment


def _toolkit_wheels(requirements: Mapping[str, Requirement]) -> Iterator[str]:
    """Yield the wheels required through extras of a vendor's metapackage."""
    for rules in load_layouts().compute.values():
        toolkit = requirements.get(rules.toolkit)
        if toolkit is not None and _has_toolkit(rules, toolkit.specifier):
            yield from (row.distribution for row in rules.wheels if row.extra in toolkit.extras)


def _has_toolkit(rules: LibraryRules, specifier: SpecifierSet) -> bool:
    """Return whether the version in a specifier is of the toolkit that rules are for."""
    computes = load_tables().compute.items()
    majors = {
        row.version.partition(".")[0] for name, row in computes if any_match(name, rules.names)
    }
    return not specifier or any(each.version.partition(".")[0] in majors for each in specifier)
