"""The interface of a package format: recognise, read, name and write files.

Each format is a class that satisfies `PackageFormat`, listed in `torchyard.package.formats`.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from torchyard.model.job_spec import JobSpec, Task
from torchyard.package.contents import Contents
from torchyard.package.limits import Limits
from torchyard.package.members import FoundMembers
from torchyard.package.sbom.component import Bill
from torchyard.package.zip.inflate import Progress


class Label(NamedTuple):
    """A package's name, version and tags, from file name and metadata; unknown ones are empty."""

    name: str = ""
    version: str = ""
    build: str = ""
    """The build string of a conda package."""
    python: str = ""
    abi: str = ""
    platforms: tuple[str, ...] = ()
    """The platform tags of a wheel, or the subdir of a conda package."""


class PackageBuild(NamedTuple):
    """The inputs and target directory of a package."""

    spec: JobSpec
    carried: Path
    """The file of the job's specification, which the package contains."""
    bill: Bill
    """What packages of the build can contain."""
    core: Task
    commit: str
    inputs: Path
    scratch: Path
    out: Path

    @property
    def number(self) -> int:
        """The build number of the package within its version, from 0."""
        text = self.spec.task.text("build_number")
        return int(text) if text.isdecimal() else 0


class PackageFormat(Protocol):
    """A package format."""

    NAME: str
    """The name in `data/formats.toml`, job settings and reports."""
    SUFFIXES: tuple[str, ...]
    """The suffixes of its file names."""
    ROOT: str
    """The description of its install directory."""
    INSTALLED: str
    """The participle for messages: installed, or unpacked."""
    IN_ENVIRONMENT: bool
    """Whether it is installed into an existing Python environment."""

    IN_ONE_FOLDER: bool
    """Whether one folder contains nearly all files of a package."""

    def read(
        self, file: BinaryIO, name: str, limits: Limits, progress: Progress, /
    ) -> FoundMembers:
        """Read all members of a package."""

    def label(self, contents: Contents, /) -> Label:
        """Return the label of a package."""

    def platforms(self, contents: Contents, /) -> set[str]:
        """Return the platforms of a package; unknown ones by their own name."""

    def install_label(self, contents: Contents, /) -> Label:
        """Return the label as installers see it; raise ValueError if they refuse it."""

    def distribution(self, file_name: str, /) -> str:
        """Return the name by which other packages require it."""

    def requirements(self, contents: Contents, /) -> Iterator[str]:
        """Yield the package's requirements in PEP 508 form."""

    def site_path(self, member: str, /) -> str | None:
        """Return the path of a member below site-packages, or None if it is not there."""

    def installed_path(self, member: str, /) -> str:
        """Return the installed path of a member, relative to the root."""

    def top_folder(self, contents: Contents, /) -> str:
        """Return the folder to unpack as the root, with a slash; empty for none."""

    def python_package(self, contents: Contents, project: str, /) -> str:
        """Return the folder of the project's Python package, from the root; empty for none."""

    def new_name(
        self,
        file_name: str,
        version: Callable[[str], str],
        tags: Iterable[tuple[str, str, str]],
        /,
    ) -> str:
        """Return the file name with another version and other tags (Python, ABI, platform).

        Raise UsageError if packages of this format can't be repaired.
        """

    def metadata_folder(self, file_name: str, members: Iterable[str], /) -> str:
        """Return the folder of a repairable package's metadata, with a slash; empty for none."""

    def pack(self, build: PackageBuild, /) -> list[Path]:
        """Write the package of a job, and return the files."""

    def pack_companions(self, build: PackageBuild, /) -> list[Path]:
        """Write the other packages of the build to install with this one."""
