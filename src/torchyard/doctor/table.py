"""The table `data/machine.toml`: what builds need of a machine."""

from collections.abc import Iterator, Mapping
from functools import cache

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.model.quantity import parse_size
from torchyard.model.severity import Severity
from torchyard.model.values import Value
from torchyard.model.version import version_numbers

_NAME = "machine.toml"


class ToolRanges(Value, kw_only=True):
    """The versions of programs that trees of torch take, from a release on, as specifiers."""

    cmake: str = ""
    gcc: str = ""
    clang: str = ""
    python: str = ""


class ToolReport(Value, kw_only=True):
    """A combination of versions that was reported as broken, and what speaks for and against it.

    It is about `releases` of torch and globs over `computes`; without these, about all. `instead`
    is a requirement for versions that were reported to work.
    """

    tool: str
    versions: str
    releases: str
    computes: tuple[str, ...] = ()
    severity: Severity
    why: str
    instead: str = ""
    sources: tuple[str, ...]


class TreeNeeds(Value, kw_only=True):
    """Memory of one compiler at its peak, and disk of a build by hand."""

    memory: str
    disk: str

    @property
    def memory_bytes(self) -> int:
        return parse_size(self.memory)

    @property
    def disk_bytes(self) -> int:
        return parse_size(self.disk)


class MachineLimits(Value, kw_only=True):
    """What every build needs, however small."""

    open_files: int
    temporary: str

    @property
    def temporary_bytes(self) -> int:
        return parse_size(self.temporary)


class BlasFiles(Value, kw_only=True):
    """The files by which a BLAS is found in a prefix, and the packages that bring it."""

    cmake: str
    headers: tuple[str, ...]
    libraries: tuple[str, ...]
    homes: tuple[str, ...] = ()
    pip: str = ""
    unfit: str = ""
    """Why torch does not find the one of PyPI."""


class PackageManager(Value, kw_only=True):
    """How a system installs packages, and what it calls them; `trial` fails if it has none such."""

    install: str
    trial: str = ""
    packages: dict[str, str]


class MachineTable(Value, kw_only=True):
    """The whole table."""

    ranges: dict[str, ToolRanges]
    reports: tuple[ToolReport, ...] = ()
    trees: dict[str, TreeNeeds]
    limits: MachineLimits
    blas: dict[str, BlasFiles]
    managers: dict[str, PackageManager]
    loaded: tuple[str, ...]
    own: tuple[str, ...]

    def changes_system(self, command: str) -> bool:
        """Return whether a command installs packages of the system."""
        return not {"sudo", *self.managers}.isdisjoint(command.split()[:2])

    def ranges_for(self, release: str) -> ToolRanges:
        """Return the ranges of a release: those of the newest row that is not newer."""
        wanted = version_numbers(release)
        rows = [row for row in self.ranges if wanted and version_numbers(row) <= wanted]
        return self.ranges[max(rows, key=version_numbers)] if rows else ToolRanges()

    def reports_about(self, tool: str, release: str, computes: tuple[str, ...]) -> list[ToolReport]:
        """Return the reports about a program, for a release and some computes."""
        return [
            one
            for one in self.reports
            if one.tool == tool
            and release
            and release in SpecifierSet(one.releases)
            and (not one.computes or any(any_match(name, one.computes) for name in computes))
        ]


@cache
def machine_table() -> MachineTable:
    """Return the table, read once."""
    return parse_machine_table(read_data(_NAME))


def parse_machine_table(text: str) -> MachineTable:
    """Parse the table, and fail with the first of its problems."""
    return parse_table(_NAME, text, MachineTable, _problems)


def _problems(table: MachineTable) -> Iterator[str]:
    specifiers = [text for row in table.ranges.values() for text in _texts(row).values()]
    specifiers += [text for one in table.reports for text in (one.versions, one.releases)]
    for text in specifiers:
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            yield f"has `{text}`, which is no range of versions"
    for one in table.reports:
        if not one.sources:
            yield f"has a report about {one.tool} {one.versions} without a source"
    for name, needs in table.trees.items():
        for size in (needs.memory, needs.disk):
            try:
                parse_size(size)
            except ValueError as error:
                yield f"has a size of {name} that can't be read: {error}"


def _texts(row: ToolRanges) -> Mapping[str, str]:
    return msgspec.structs.asdict(row)
