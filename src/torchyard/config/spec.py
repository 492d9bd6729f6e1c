"""What `torchyard.toml` may say, as it is written: the first of the two stages.

These classes are the single source for the JSON schema that editors use and for the
configuration reference; each description is one line that a user reads there.
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from torchyard.config.recipes import DEFAULT_RECIPE, known_recipes
from torchyard.model.values import Value

Globs = str | list[str]
_RECIPES = "; ".join(f"`{one.name}` {one.title}" for one in known_recipes().values())


class ProjectSpec(Value, kw_only=True):
    """What is built."""

    name: Annotated[str, Meta(description="Name of the distribution, such as `torch`.")]
    version: Annotated[str, Meta(description="Public version, without the `+cu130` part.")]
    nightly: Annotated[
        str | None,
        Meta(description="Date of a day's build, such as `20261114`: it makes `.dev20261114`."),
    ] = None
    recipe: Annotated[
        str,
        Meta(description=f"{_RECIPES}."),
    ] = DEFAULT_RECIPE
    release: Annotated[
        str | None,
        Meta(
            description="Torch release to take library pins from, else the version's own; "
            "`none`: the project has pins of its own."
        ),
    ] = None


class SourceSpec(Value, kw_only=True):
    """Where the code comes from: `git` with `rev`, or `path`."""

    git: Annotated[str | None, Meta(description="Repository to clone.")] = None
    rev: Annotated[str | None, Meta(description="Commit, tag or branch to take.")] = None
    commit: Annotated[
        str | None,
        Meta(description="The 40 digits of the commit that `rev` means; it alone counts then."),
    ] = None
    path: Annotated[
        str | None, Meta(description="Directory, relative to this file; its content counts.")
    ] = None
    submodules: Annotated[bool, Meta(description="Take git submodules along.")] = True


class CellSpec(Value, kw_only=True):
    """A partial cell: for each dimension a glob or a list of globs; unnamed ones admit all."""

    platform: Annotated[Globs | None, Meta(description="Globs over platforms.")] = None
    compute: Annotated[Globs | None, Meta(description="Globs over compute platforms.")] = None
    blas: Annotated[Globs | None, Meta(description="Globs over BLAS (recipe pytorch).")] = None
    torch: Annotated[Globs | None, Meta(description="Globs over torch (recipe extension).")] = None
    python: Annotated[Globs | None, Meta(description="Globs over Pythons.")] = None
    package: Annotated[Globs | None, Meta(description="Globs over package kinds.")] = None


class RuleSpec(CellSpec, kw_only=True):
    """A partial cell that the matrix leaves out, or takes in, and why."""

    reason: Annotated[str, Meta(description="Shown in every plan: why this rule exists.")]


class CoupleSpec(Value, kw_only=True):
    """Dimensions that vary together: lists of one length, read side by side (as zip_keys are)."""

    platform: Annotated[list[str] | None, Meta(description="Platforms.")] = None
    compute: Annotated[list[str] | None, Meta(description="Compute platforms.")] = None
    blas: Annotated[list[str] | None, Meta(description="BLAS (recipe pytorch).")] = None
    torch: Annotated[list[str] | None, Meta(description="Torch (recipe extension).")] = None
    python: Annotated[list[str] | None, Meta(description="Pythons.")] = None
    package: Annotated[list[str] | None, Meta(description="Package kinds.")] = None


class MatrixSpec(Value, kw_only=True):
    """The values of each dimension; the product of all is what exists, less the rules."""

    platform: Annotated[list[str] | None, Meta(description="Platforms to build for.")] = None
    compute: Annotated[list[str] | None, Meta(description="cpu, CUDA, ROCm, xpu.")] = None
    blas: Annotated[list[str] | None, Meta(description="BLAS (recipe pytorch).")] = None
    torch: Annotated[
        list[str] | None, Meta(description="Torch releases to build against (extension).")
    ] = None
    python: Annotated[list[str] | None, Meta(description="Pythons, as in wheel tags.")] = None
    package: Annotated[list[str] | None, Meta(description="Package kinds to deliver.")] = None
    couple: Annotated[list[CoupleSpec], Meta(description="Dimensions that vary together.")] = field(
        default_factory=list
    )
    exclude: Annotated[list[RuleSpec], Meta(description="Cells that are left out.")] = field(
        default_factory=list
    )
    include: Annotated[
        list[RuleSpec],
        Meta(description="Cells that exist beyond the product or despite an exclusion."),
    ] = field(default_factory=list)


class SubsetSpec(CellSpec, kw_only=True):
    """A named part of the matrix."""

    cells: Annotated[Globs | None, Meta(description="Globs over whole cell identifiers.")] = None


class NeedsSpec(Value, kw_only=True):
    """What the jobs of a stage want from a machine."""

    memory: Annotated[str | None, Meta(description="Memory, such as `64 GB`.")] = None
    disk: Annotated[str | None, Meta(description="Working disk, such as `80 GB`.")] = None
    time: Annotated[str | None, Meta(description="Usual duration, such as `90 min`.")] = None
    capabilities: Annotated[
        list[str], Meta(description="What the machine must offer, such as `cuda`.")
    ] = field(default_factory=list)


class RequirementsSpec(Value, kw_only=True):
    """Needs of each stage; an override may change them for some cells."""

    source: Annotated[NeedsSpec, Meta(description="Fetching the source.")] = NeedsSpec()
    core: Annotated[NeedsSpec, Meta(description="Compiling the C++ core.")] = NeedsSpec()
    bindings: Annotated[NeedsSpec, Meta(description="Compiling for one Python.")] = NeedsSpec()
    package: Annotated[NeedsSpec, Meta(description="Making the package.")] = NeedsSpec()
    check: Annotated[NeedsSpec, Meta(description="Looking into the package.")] = NeedsSpec()
    smoke: Annotated[NeedsSpec, Meta(description="Installing and trying it.")] = NeedsSpec()
    publish: Annotated[NeedsSpec, Meta(description="Publishing to a channel.")] = NeedsSpec()


class OverrideSpec(CellSpec, kw_only=True):
    """Settings for the cells that a partial cell matches."""

    stage: Annotated[Globs, Meta(description="Stage or stages that the settings are for.")]
    env: Annotated[dict[str, str], Meta(description="Environment variables of the build.")] = field(
        default_factory=dict
    )
    cmake: Annotated[dict[str, str], Meta(description="CMake cache entries (`-D`).")] = field(
        default_factory=dict
    )
    archs: Annotated[
        list[str], Meta(description="Device architectures in place of the table's.")
    ] = field(default_factory=list)
    pass_env: Annotated[
        list[str], Meta(description="Variables that these jobs take from the caller; no secrets.")
    ] = field(default_factory=list)
    backend: Annotated[
        Literal["setup.py", "scikit-build-core"] | None,
        Meta(description="What makes these cores' wheels."),
    ] = None
    cache: Annotated[
        bool | None, Meta(description="Use the compile cache, or not, whatever is published where.")
    ] = None
    needs: Annotated[NeedsSpec, Meta(description="What these jobs want instead.")] = NeedsSpec()


class StepSpec(Value, kw_only=True):
    """One command of a job. Words in braces, such as `{source}` and `{out}`, are replaced."""

    run: Annotated[Globs, Meta(description="Program and arguments, or a line for the shell.")]
    name: Annotated[str, Meta(description="What logs and boards call it.")] = ""
    cwd: Annotated[str, Meta(description="Where it runs.")] = "{build}"
    env: Annotated[dict[str, str], Meta(description="Environment variables of this step.")] = field(
        default_factory=dict
    )
    outputs: Annotated[
        list[str], Meta(description="Globs under `{out}` that must match a file afterwards.")
    ] = field(default_factory=list)
    network: Annotated[bool, Meta(description="Needs the network, also in a sandbox.")] = False


class StepsSpec(Value, kw_only=True):
    """Steps in place of the recipe's own; an empty list is a job with nothing to do."""

    source: Annotated[list[StepSpec] | None, Meta(description="Fetching the source.")] = None
    core: Annotated[list[StepSpec] | None, Meta(description="Compiling the C++ core.")] = None
    bindings: Annotated[list[StepSpec] | None, Meta(description="Compiling for one Python.")] = None
    package: Annotated[list[StepSpec] | None, Meta(description="Making the package.")] = None
    check: Annotated[list[StepSpec] | None, Meta(description="Looking into the package.")] = None
    smoke: Annotated[list[StepSpec] | None, Meta(description="Installing and trying it.")] = None
    publish: Annotated[list[StepSpec] | None, Meta(description="Publishing to a channel.")] = None


class SandboxSpec(Value, kw_only=True):
    """What keeps a job's steps from the machine."""

    kind: Annotated[
        Literal["none", "view", "bwrap"],
        Meta(
            description="`bwrap`: read-only root, no network, only the work directory writable; "
            "`view`: only the work directory's path is the same everywhere."
        ),
    ] = "none"
    root: Annotated[
        str | None, Meta(description="Directory tree to run in, as debootstrap makes them.")
    ] = None


class ToolchainSpec(Value, kw_only=True):
    """What compiles. What is found of it on the machine that plans is in every fingerprint."""

    compiler: Annotated[
        str, Meta(description="gcc, gcc-12, clang-16 …, or the path of such a program.")
    ] = "gcc"
    cuda: Annotated[
        Literal["auto", "system", "pypi"],
        Meta(description="Where CUDA comes from; `auto`: the system's if its version is right."),
    ] = "auto"
    blas: Annotated[
        Literal["auto", "system", "pypi"],
        Meta(description="Where MKL and OpenBLAS come from; `auto`: PyPI's, whose pins we have."),
    ] = "auto"
    cache: Annotated[
        str | None,
        Meta(description="Compile cache for sccache: a directory, `redis://…` or `s3://…`."),
    ] = None


class BuildSpec(Value, kw_only=True):
    """How the project's own build is driven (recipe pytorch)."""

    backend: Annotated[
        Literal["setup.py", "scikit-build-core"],
        Meta(description="What makes the project's wheels, and runs CMake for it."),
    ] = "setup.py"
    requires: Annotated[
        list[str], Meta(description="Build requirements, each pinned: `cmake==3.31.10`.")
    ] = field(default_factory=list)
    linalg: Annotated[
        str | None,
        Meta(description="CMake target that is also built without MAGMA, for conda packages."),
    ] = None


class CheckSpec(Value, kw_only=True):
    """How strictly packages are looked at (stage check)."""

    policy: Annotated[
        str, Meta(description="A policy of torchyard's, or a file of your own: `checks.toml`.")
    ] = "default"


class SmokeSpec(Value, kw_only=True):
    """How packages are tried (stage smoke)."""

    level: Annotated[
        Literal["import", "ops", "full"], Meta(description="How much of a package is tried.")
    ] = "full"
    tests: Annotated[
        str | None,
        Meta(description="Directory, relative to this file, with tests of the project's own."),
    ] = None
    channels: Annotated[
        list[str],
        Meta(
            description="Conda channels for what conda packages need, the best first: "
            "addresses, or directories relative to this file."
        ),
    ] = field(default_factory=list)


class StoreSpec(Value, kw_only=True):
    """Where results are kept."""

    url: Annotated[
        str, Meta(description="`file://` or `s3://` address, or a directory beside this file.")
    ] = ".torchyard/store"
    copies: Annotated[
        str | None,
        Meta(description="How much of it stays on a machine for its next jobs, such as `50 GB`."),
    ] = None


class ChannelSpec(Value, kw_only=True):
    """A place where packages are published."""

    url: Annotated[str, Meta(description="`file://` or `s3://` address, or a directory.")]
    subset: Annotated[
        str | None, Meta(description="Subset that is published here; the whole matrix if unnamed.")
    ] = None
    promote_from: Annotated[
        str | None, Meta(description="Takes packages from that channel, never from a build.")
    ] = None
    external: Annotated[
        list[str],
        Meta(description="Globs over names that packages may require and the channel has not."),
    ] = field(default_factory=list)
    variants: Annotated[
        Literal["compute", "compute-blas"],
        Meta(description="What has an index of its own; a channel that is there keeps to it."),
    ] = "compute"


class FileSpec(Value, kw_only=True):
    """torchyard.toml: one file that says which binaries should exist."""

    project: Annotated[ProjectSpec, Meta(description="What is built.")]
    source: Annotated[SourceSpec, Meta(description="Where the code comes from.")]
    matrix: Annotated[MatrixSpec, Meta(description="Which packages should exist.")]
    subset: Annotated[
        dict[str, SubsetSpec], Meta(description="Named parts of the matrix, such as `pr`.")
    ] = field(default_factory=dict)
    override: Annotated[list[OverrideSpec], Meta(description="Settings for some cells.")] = field(
        default_factory=list
    )
    toolchain: Annotated[ToolchainSpec | None, Meta(description="What compiles.")] = None
    build: Annotated[BuildSpec, Meta(description="How the project's own build is driven.")] = (
        BuildSpec()
    )
    check: Annotated[CheckSpec, Meta(description="How strictly packages are looked at.")] = (
        CheckSpec()
    )
    smoke: Annotated[SmokeSpec, Meta(description="How packages are tried.")] = SmokeSpec()
    store: Annotated[StoreSpec, Meta(description="Where results are kept.")] = StoreSpec()
    channel: Annotated[
        dict[str, ChannelSpec], Meta(description="Where packages are published.")
    ] = field(default_factory=dict)
    requirements: Annotated[
        RequirementsSpec, Meta(description="What each stage wants from a machine.")
    ] = RequirementsSpec()
    steps: Annotated[
        StepsSpec, Meta(description="Commands of your own, in place of a recipe's.")
    ] = StepsSpec()
    sandbox: Annotated[SandboxSpec, Meta(description="What jobs can reach.")] = SandboxSpec()
