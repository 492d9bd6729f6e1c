"""The table `data/machine.toml`: what builds need from a machine."""

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
    """The versions of programs that torch accepts from a release on, as specifiers."""

    cmake: str = ""
    gcc: str = ""
    clang: str = ""
    python: str = ""


class ToolReport(Value, kw_only=True):
    """A combination of versions that was reported as broken, and its sources.

    It is about `releases` of torch and globs over `computes`, or else about all. `instead` is a
    requirement for versions that were reported to work.
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
    """Peak memory of a compiler, and disk of a build by hand."""

    memory: str
    disk: str

    @property
    def memory_bytes(self) -> int:
        return parse_size(self.memory)

    @property
    def disk_bytes(self) -> int:
        return parse_size(self.disk)


class MachineLimits(Value, kw_only=True):
    """What even the smallest build needs."""

    open_files: int
    temporary: str

    @property
    def temporary_bytes(self) -> int:
        return parse_size(self.temporary)


class BlasFiles(Value, kw_only=True):
    """The files that identify a BLAS in a prefix, and the packages that contain it."""

    cmake: str
    headers: tuple[str, ...]
    libraries: tuple[str, ...]
    homes: tuple[str, ...] = ()
    pip: str = ""
    unfit: str = ""
    """Why torch does not find the one from PyPI."""


class PackageManager(Value, kw_only=True):
    """A system's package manager and its package names; `trial` fails if they do not exist."""

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
        """Return whether a command installs system packages."""
        return not {"sudo", *self.managers}.isdisjoint(command.split()[:2])

    def ranges_for(self, release: str) -> ToolRanges:
        """Return the ranges of a release, from the newest row that is not newer."""
        wanted = version_numbers(release)
        rows = [row for row in self.ranges if wanted and version_numbers(row) <= wanted]
        return self.ranges[max(rows, key=version_numbers)] if rows else ToolRanges()

    def reports_about(self, tool: str, release: str, computes: tuple[str, ...]) -> list[ToolReport]:
        """Return the reports about a program, for a release and computes."""
        return [
            report
            for report in self.reports
            if report.tool == tool
            and release
            and release in SpecifierSet(report.releases)
            and (not report.computes or any(any_match(name, report.computes) for name in computes))
        ]


@cache
def machine_table() -> MachineTable:
    """Return the table, which is read once."""
    return parse_machine_table(read_data(_NAME))


def parse_machine_table(text: str) -> MachineTable:
    """Parse the table, and fail with the first of its problems."""
    return parse_table(_NAME, text, MachineTable, _problems)


def _problems(table: MachineTable) -> Iterator[str]:
    specifiers = [text for row in table.ranges.values() for text in _texts(row).values()]
    specifiers += [text for report in table.reports for text in (report.versions, report.releases)]
    for text in specifiers:
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            yield f"has `{text}`, which is no version range"
    for report in table.reports:
        if not report.sources:
            yield f"has a report about {report.tool} {report.versions} without a source"
    for name, needs in table.trees.items():
        for size in (needs.memory, needs.disk):
            try:
                parse_size(size)
            except ValueError as error:
                yield f"has a size of {name} that is invalid: {error}"


def _texts(row: ToolRanges) -> Mapping[str, str]:
    return msgspec.structs.asdict(row)
