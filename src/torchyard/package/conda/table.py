"""The table of conda names and pins, read only to make conda packages."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import msgspec

from torchyard.config.tables import load_tables
from torchyard.host.data_tables import parse_table
from torchyard.host.files import read_data
from torchyard.model.matrix import any_match
from torchyard.model.values import Value
from torchyard.model.version import version_numbers


class Names(Value, kw_only=True):
    """The names of a project's packages; `{name}` is the project."""

    package: str
    libraries: str
    linalg: str
    tests: str
    cpu: str
    gpu: str


class Linalg(Value, kw_only=True):
    """The linear algebra plugin, which has its own package."""

    library: str


class Offsets(Value, kw_only=True):
    """Offsets to the build number of builds that solvers should prefer."""

    mkl: int
    driver: int
    magma: int
    toolkit: int
    """For each minor version of a GPU's toolkit."""


class CondaNeeds(Value, kw_only=True):
    """Packages that must, or must not, be installed together with others."""

    depends: tuple[str, ...]
    constrains: tuple[str, ...] = ()


class LibraryRow(Value, kw_only=True):
    """A package of the channel, and the sonames of its libraries.

    Its version is at least that of a `pin`, a setting of the core, else the `least`.
    """

    package: str
    sonames: tuple[str, ...]
    least: str
    below: str = ""
    pin: str = ""

    def requirement(self, pins: Mapping[str, str]) -> str:
        """Return the requirement for a package that needs one of the libraries."""
        end = f",<{self.below}.0a0" if self.below else ""
        return f"{self.package} >={pins.get(self.pin, self.least)}{end}"


class RuntimeRow(Value, kw_only=True):
    """A package with a library of the compiler, and the compilers that its symbol versions are of.

    Without `releases`, a symbol version is the compiler's own: `GCC_12.0.0`.
    """

    package: str
    soname: str
    versions: str
    aliases: tuple[str, ...] = ()
    releases: dict[str, str] = {}

    def requirement(self, symbols: Iterable[str]) -> str:
        """Return the requirement for a package that needs these symbol versions."""
        prefix = f"{self.versions}_"
        own = (text.removeprefix(prefix) for text in symbols if text.startswith(prefix))
        found = [self.releases.get(version, version) for version in own]
        majors = [version_numbers(version)[0] for version in found if version[:1].isdecimal()]
        return f"{self.package} >={max(majors)}" if majors else self.package


class Markers(Value, kw_only=True):
    """The environment values for markers of requirements."""

    os_name: str
    platform_machine: str
    platform_system: str
    sys_platform: str


class CondaTable(Value, kw_only=True):
    """All of `data/conda.toml`."""

    names: dict[str, Names]
    linalg: Linalg
    offsets: Offsets
    blas: dict[str, CondaNeeds]
    libraries: tuple[LibraryRow, ...]
    runtimes: tuple[RuntimeRow, ...]
    tests: CondaNeeds
    markers: dict[str, Markers]
    distributions: dict[str, str]

    @property
    def sonames(self) -> tuple[str, ...]:
        """Globs of all libraries in packages of the channel."""
        return tuple(soname for row in self.libraries for soname in row.sonames)

    @property
    def pins(self) -> frozenset[str]:
        """The settings of a core with versions of libraries."""
        return frozenset(row.pin for row in self.libraries if row.pin)


@cache
def load_conda_table() -> CondaTable:
    """Read the table, and check it against the others."""
    return parse_conda_table(read_data("conda.toml"))


def channel_sonames(libraries: str) -> tuple[str, ...]:
    """Return globs of the libraries that come from the channel, by a job's setting."""
    return load_conda_table().sonames if libraries == "channel" else ()


def parse_conda_table(text: str) -> CondaTable:
    """Read the text of the table."""
    return parse_table("conda.toml", text, CondaTable, _problems)


def _problems(table: CondaTable) -> Iterator[str]:
    tables = load_tables()
    if "*" not in table.names:
        yield "has no default names of packages"
    for project, row in table.names.items():
        names = [name.replace("{name}", project) for name in msgspec.structs.astuple(row)]
        if len(set(names)) != len(names) or any("{" in name for name in names):
            yield f"has names for `{project}` that are equal, or not only of {{name}}"
    for blas in table.blas:
        if blas not in tables.blas:
            yield f"has an unknown BLAS `{blas}`"
    for library in table.libraries:
        if not library.sonames or any_match("libc.so.6", library.sonames):
            yield f"names no libraries of {library.package}, or all of them by `*`"
    subdirs = {platform.conda_subdir for platform in tables.platforms.values()}
    for subdir in table.markers:
        if subdir not in subdirs:
            yield f"has an unknown platform `{subdir}`"
