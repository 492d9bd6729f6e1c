"""The evaluated configuration: a `torchyard.toml` with all names resolved."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from torchyard.model.ci import CiSettings
from torchyard.model.conda_output import CondaOutput
from torchyard.model.lock import BuildLock
from torchyard.model.matrix import Matrix, Needs, Override, Subset
from torchyard.model.proof import Check, Smoke
from torchyard.model.recipe import Recipe, Stage
from torchyard.model.recipe_output import RecipeOutput
from torchyard.model.step import Step
from torchyard.model.tables import Tables
from torchyard.model.toolchain import Build, Libraries, Toolchain
from torchyard.model.values import DEFAULT, Origin, Value


class Project(Value, kw_only=True):
    """The project to build. `release` is the torch release whose pins to use, if any.

    `build_number` counts rebuilt packages of the same version; `dependencies` are
    requirements of its wheels besides those that it declares.
    """

    name: str
    version: str
    recipe: Recipe
    release: str | None
    build_number: int = 0
    dependencies: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name}-{self.version}"


def own_release(version: str) -> str:
    """Return the torch release of a version of torch: `2.14` for `2.14.0rc1`."""
    return ".".join(re.findall(r"\d+", version)[:2])


class DeclaredDownload(Value, kw_only=True):
    """A download of the project's build: `git` with `commit`, or `archive`."""

    git: Annotated[
        str | None, Meta(description="Repository, or its path relative to this file.")
    ] = None
    rev: Annotated[str | None, Meta(description="Tag by which the project requests it.")] = None
    commit: Annotated[str | None, Meta(description="The 40 digits of the commit.")] = None
    archive: Annotated[
        str | None,
        Meta(description="Address of any file, or its path relative to this file."),
    ] = None
    sha256: Annotated[str | None, Meta(description="Digest of the file.")] = None
    instead_of: Annotated[
        str | None, Meta(description="Address that the project requests, if different.")
    ] = None
    to: Annotated[
        str | None,
        Meta(
            description="Directory of the source to put it in, unpacked, such as that of a "
            "submodule missing in an sdist; default: it is offered at the address."
        ),
    ] = None

    @property
    def requested(self) -> str:
        """The address that the project requests."""
        return self.instead_of or self.git or self.archive or ""

    @property
    def identity(self) -> str:
        """Its content and destination, independent of the address it is fetched from."""
        return " ".join(filter(None, (self.commit, self.rev, self.sha256, self.to)))


class Source(Value, kw_only=True):
    """Where the source comes from: a commit, a directory's content, an archive, or a registry.

    `debian` is a source package, as `name=version`, and `sdist` a Python one, as `name==version`. A
    `rev` may be a tag or branch, whose commit is unknown until it is resolved. An `archive` is an
    address or a file. `leave_out` are excluded paths in the directory; without
    `include_ignored`, files ignored by git are excluded, too. `also` are downloads of the build.
    """

    git: str | None = None
    rev: str | None = None
    commit: str | None = None
    path: str | None = None
    leave_out: tuple[str, ...] = ()
    include_ignored: bool = False
    digest: str | None = None
    debian: str | None = None
    archive: str | None = None
    sdist: str | None = None
    sha256: str | None = None
    submodules: bool = True
    also: tuple[DeclaredDownload, ...] = ()

    @property
    def file(self) -> str | None:
        """The local directory or file that it is read from, if any."""
        is_address = self.archive is not None and "://" in self.archive
        return self.path or (None if is_address else self.archive)


class Patches(Value, kw_only=True):
    """The patches of a source: globs, and the texts of the files that they match, in order."""

    globs: tuple[str, ...] = ()
    texts: dict[str, str] = {}


SmokeDemand = Literal["planned", "required", "off"]
SandboxDemand = Literal["required", "any"]
"""Packages that must pass smoke tests: those with smoke jobs in a plan, all, or none."""


class ChannelConfig(Value, kw_only=True):
    """A channel: it receives a subset of the matrix, or packages promoted from another channel."""

    name: str
    url: str
    subset: str | None = None
    promote_from: str | None = None
    external: tuple[str, ...] = ()
    """Globs over projects that its packages may require from outside the channel."""
    upstream: tuple[str, ...] = ()
    """Addresses of simple indexes with these projects."""
    smoke: SmokeDemand = "planned"
    sandbox: SandboxDemand = "any"
    """Whether its packages must have been built in a sandbox."""
    variants: Literal["compute", "compute-blas"] = "compute"
    """What names its simple indexes."""

    def receives(self, subset: str | None) -> bool:
        """Return whether the plan of a subset (None: the whole matrix) is published here."""
        return self.promote_from is None and self.subset == subset


SandboxKind = Literal["none", "view", "bwrap"]
"""No isolation; the job's directory at one path on every machine; or a boundary."""


class Sandbox(Value, kw_only=True):
    """How a job's steps are isolated; by default with bubblewrap where it works.

    `root` is the root file system of the steps; `readable` are further paths that they can read.
    """

    kind: SandboxKind | None = None
    root: str | None = None
    readable: tuple[str, ...] = ()


class Config(Value, kw_only=True):
    """One `torchyard.toml`, ready to be planned."""

    project: Project
    source: Source
    patches: Patches = Patches()
    left_out: dict[str, str] = {}
    """The excluded paths in the source directory, each with the reason."""
    matrix: Matrix
    subsets: dict[str, Subset] = {}
    overrides: tuple[Override, ...] = ()
    store: str = ""
    copies: str | None = None
    channels: dict[str, ChannelConfig] = {}
    requirements: dict[Stage, Needs] = {}
    steps: dict[Stage, tuple[Step, ...]] = {}
    sandbox: Sandbox = Sandbox()
    toolchain: Toolchain | None = None
    build: Build = Build()
    lock: BuildLock = BuildLock()
    conda_libraries: Libraries = "bundled"
    conda_license: str = ""
    conda_outputs: dict[str, CondaOutput] = {}
    conda_license_texts: dict[str, str] = {}
    """The license files of its outputs, by their paths from the file."""
    conda_channels: tuple[str, ...] = ()
    recipe_outputs: tuple[RecipeOutput, ...] = ()
    """The outputs of a conda recipe, which are the cells."""
    check: Check = Check()
    smoke: Smoke = Smoke()
    ci: CiSettings = CiSettings()
    tables: Tables
    origins: dict[str, Origin] = {}

    def row_origin(self, table: str, *keys: str) -> Origin | None:
        """Return the origin of a table's row or key in the file; None if it is shipped."""
        return self.origins.get(".".join(("tables", table, *keys)))

    def origin(self, path: str) -> Origin:
        """Return the origin of the value at a dotted path, such as `matrix.python[2]`."""
        return self.origins.get(path, DEFAULT)
