"""A package under test, as described by its file before anything is installed."""

from hashlib import file_digest
from pathlib import Path

import msgspec
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

from torchyard.checks.expected import expected_of, spec_in_package
from torchyard.compute.registry import device_codes, platform_for
from torchyard.compute.table import LibraryRules
from torchyard.config.tables import load_tables
from torchyard.errors import HostError
from torchyard.model.matrix import any_match
from torchyard.model.recipe import Stage
from torchyard.model.values import Value
from torchyard.package.contents import Contents
from torchyard.package.formats import FORMATS, format_of
from torchyard.package.read import read_package
from torchyard.toolchain.summary import summary_table

NO_COMMIT = "none"
"""The commit of a package whose source has no commits, such as Debian's."""


class PackageUnderTest(Value, kw_only=True):
    """A package, described by its name and metadata; unknown fields are empty."""

    path: str
    format: str = msgspec.field(name="kind")
    name: str
    version: str = ""
    compute: str = ""
    """cpu, cu130, rocm7.2 …"""
    commit: str = ""
    """The source's commit, if the package contains its spec; `none` for other sources."""
    promises: dict[str, str] = {}
    """Facts for tests about torch's configuration, from the spec."""
    build: str = ""
    subdir: str = ""
    """The subdir of a conda package."""
    index: str = ""
    """The address of a published package's index, conda channel or file."""
    sha256: str = ""
    """The file's digest; empty for a published package."""

    @property
    def file(self) -> str:
        return Path(self.path).name

    @property
    def title(self) -> str:
        """The name and version, for tables of known failures: `torch-2.13.0+cpu`."""
        return f"{self.name}-{self.version}" if self.version else self.name

    @property
    def rules(self) -> tuple[LibraryRules, ...]:
        """The library rules of its compute platform, rarely more than one."""
        rows = platform_for(self.compute).libraries().values()
        return tuple(row for row in rows if any_match(self.compute, row.names))

    @property
    def uses_other_wheels(self) -> bool:
        """Whether its libraries may be in other wheels, which take precedence."""
        forced = any(row.wheels and row.force_rpath for row in self.rules)
        return FORMATS[self.format].IN_ENVIRONMENT and forced

    @property
    def tags(self) -> frozenset[Tag]:
        """The Pythons and systems that a wheel supports."""
        return parse_wheel_filename(self.file)[3]


def read_package_under_test(path: Path) -> PackageUnderTest:
    """Read a package completely, without unpacking it."""
    contents = read_package(path)
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    try:
        label = format_of(contents).install_label(contents)
    except ValueError as error:
        msg = f"`{path}` can't be installed: {error}"
        raise HostError(msg, hint="`torchyard check` reports what is wrong with it") from error
    expected, blas = expected_of(contents), summary_table().blas
    return PackageUnderTest(
        path=str(path.absolute()),
        format=contents.format,
        name=label.name,
        version=label.version,
        compute=expected.compute,
        promises={
            "BLAS": "|".join(blas[word] for word in expected.words if word in blas),
            "CODES": " ".join(device_codes(expected.archs)),
            "SWITCHES": " ".join(expected.switches),
        },
        commit=_commit(contents),
        sha256=digest,
        build=label.build,
        subdir=label.platforms[0] if load_tables().formats[contents.format].channels else "",
    )


def _commit(contents: Contents) -> str:
    spec = spec_in_package(contents)
    tasks = spec.tasks if spec else ()
    if spec and tasks and not spec.commit:
        return NO_COMMIT
    return next((task.text("commit") for task in tasks if task.stage is Stage.SOURCE), "")
