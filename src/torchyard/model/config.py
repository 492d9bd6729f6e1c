"""The evaluated configuration: everything `torchyard.toml` says, with all names resolved."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from torchyard.model.ci import CiSettings
from torchyard.model.lock import BuildLock
from torchyard.model.matrix import Matrix, Needs, Override, Subset
from torchyard.model.proof import Check, Smoke
from torchyard.model.recipe import Recipe, Stage
from torchyard.model.step import Step
from torchyard.model.tables import Tables
from torchyard.model.toolchain import Build, Libraries, Toolchain
from torchyard.model.values import DEFAULT, Origin, Value


class Project(Value, kw_only=True):
    """What is built. `release` is the row of the torch release table to take pins from, if any.

    `build_number` counts packages of one version that are made anew; `dependencies` are
    requirements that its wheels have besides those that it declares itself.
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
    """The torch release that a version of torch itself belongs to: `2.14` for `2.14.0rc1`."""
    return ".".join(re.findall(r"\d+", version)[:2])


class DeclaredDownload(Value, kw_only=True):
    """What the project downloads while it is built: `git` with `commit`, or `archive`."""

    git: Annotated[
        str | None, Meta(description="Repository, or its path relative to this file.")
    ] = None
    rev: Annotated[str | None, Meta(description="Tag by which the project asks for it.")] = None
    commit: Annotated[str | None, Meta(description="The 40 digits of the commit.")] = None
    archive: Annotated[
        str | None,
        Meta(description="Address of a file of any kind, or its path relative to this file."),
    ] = None
    sha256: Annotated[str | None, Meta(description="Digest of the file.")] = None
    instead_of: Annotated[
        str | None, Meta(description="Address that the project asks for, if it is another one.")
    ] = None
    to: Annotated[
        str | None,
        Meta(
            description="Directory of the source to put it in, unpacked, such as that of a "
            "submodule that an sdist lacks; default: it is offered at the address."
        ),
    ] = None

    @property
    def asked(self) -> str:
        """The address that the project asks for."""
        return self.instead_of or self.git or self.archive or ""

    @property
    def identity(self) -> str:
        """What it is and where it belongs, wherever it is fetched from."""
        return " ".join(filter(None, (self.commit, self.rev, self.sha256, self.to)))


class Source(Value, kw_only=True):
    """Where the source comes from: a commit, a directory's content, an archive, or a registry.

    `debian` is a source package, as `name=version`, and `sdist` a Python one, as `name==version`. A
    `rev` may be a tag or branch, whose commit is unknown until it is resolved. An `archive` is an
    address or a file. `leave_out` are paths in the directory that are no part of it, and without
    `include_ignored` what git ignores is not, either. `also` is what the build would download.
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
        """The directory or file of this machine that it is read from, if it is one."""
        is_address = self.archive is not None and "://" in self.archive
        return self.path or (None if is_address else self.archive)


class Patches(Value, kw_only=True):
    """The patches of a source: globs, and the texts of the files that they match, in order."""

    globs: tuple[str, ...] = ()
    texts: dict[str, str] = {}


SmokeDemand = Literal["planned", "required", "off"]
SandboxDemand = Literal["required", "any"]
"""Which packages a channel takes only if they work: those that a plan has smoke jobs for, all, or
none."""


class ChannelConfig(Value, kw_only=True):
    """A channel. It receives a subset of the matrix, or packages promoted from another channel."""

    name: str
    url: str
    subset: str | None = None
    promote_from: str | None = None
    external: tuple[str, ...] = ()
    """Globs over projects that its packages may require from outside the channel."""
    upstream: tuple[str, ...] = ()
    """Addresses of simple indexes that have these."""
    smoke: SmokeDemand = "planned"
    sandbox: SandboxDemand = "any"
    """Whether steps of the jobs that made its packages must have run in a sandbox."""
    variants: Literal["compute", "compute-blas"] = "compute"
    """What its simple indexes are named after."""

    def receives(self, subset: str | None) -> bool:
        """Return whether the plan of a subset (None: the whole matrix) is published here."""
        return self.promote_from is None and self.subset == subset


SandboxKind = Literal["none", "view", "bwrap"]
"""No isolation; the job's directory at one path on every machine; or a boundary."""


class Sandbox(Value, kw_only=True):
    """How a job's steps are isolated: with bubblewrap where it works, if no kind is given.

    `root` is a root file system to run them in; `readable` are more paths that they can read.
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
    """The paths in the source directory that are not taken, and why."""
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
    check: Check = Check()
    smoke: Smoke = Smoke()
    ci: CiSettings = CiSettings()
    tables: Tables
    origins: dict[str, Origin] = {}

    def row_origin(self, table: str, *keys: str) -> Origin | None:
        """Return where the file has a row of a table, or a key of it; None if it is as shipped."""
        return self.origins.get(".".join(("tables", table, *keys)))

    def origin(self, path: str) -> Origin:
        """Return the origin of the value at a dotted path, such as `matrix.python[2]`."""
        return self.origins.get(path, DEFAULT)
