"""The contents of `torchyard.toml` as written, before evaluation.

These classes are the single source for the JSON schema that editors use and for the
configuration reference; each description is one line in both.
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from torchyard.config.cell_spec import CellSpec, Globs
from torchyard.config.ci_spec import CiSpec
from torchyard.config.recipes import DEFAULT_RECIPE, known_recipes
from torchyard.model.conda_output import CondaOutput
from torchyard.model.config import DeclaredDownload
from torchyard.model.values import Value

_RECIPES = "; ".join(f"`{recipe.name}` {recipe.title}" for recipe in known_recipes().values())


class ProjectSpec(Value, kw_only=True):
    """The project to build."""

    name: Annotated[str, Meta(description="Name of the distribution, such as `torch`.")]
    version: Annotated[str, Meta(description="Public version, without the `+cu130` part.")]
    nightly: Annotated[
        str | None,
        Meta(description="Date of a nightly build: `20261114` adds `.dev20261114` to the version."),
    ] = None
    recipe: Annotated[
        str,
        Meta(description=f"{_RECIPES}."),
    ] = DEFAULT_RECIPE
    build_number: Annotated[
        int | str,
        Meta(
            description="Build number of packages of the same version: 0 to 99. In names of "
            "wheels and zips if it is not 0; in conda's build numbers, plus their offsets."
        ),
    ] = 0
    release: Annotated[
        str | None,
        Meta(
            description="Torch release to take library pins from; default: that of the version; "
            "`none`: the project has its own pins."
        ),
    ] = None
    dependencies: Annotated[
        list[str],
        Meta(
            description="Undeclared run-time requirements of an extension, such as "
            "`torch-scatter`, to add to its wheels."
        ),
    ] = field(default_factory=list)


class SourceSpec(Value, kw_only=True):
    """Where the code comes from: one of `git`, `path`, `archive`, `sdist` and `debian`."""

    git: Annotated[str | None, Meta(description="Repository to clone.")] = None
    rev: Annotated[str | None, Meta(description="Commit, tag or branch to take.")] = None
    commit: Annotated[
        str | None,
        Meta(description="The 40 digits of the commit to take; `rev` is then only informative."),
    ] = None
    path: Annotated[
        str | None, Meta(description="Directory, relative to this file; identified by its content.")
    ] = None
    leave_out: Annotated[
        list[str],
        Meta(
            description="Files and directories in `path` that are not part of the source, such as "
            "`docs` and `.github`: changing them rebuilds nothing."
        ),
    ] = field(default_factory=list)
    include_ignored: Annotated[
        bool,
        Meta(
            description="Include files in `path` that git ignores. Otherwise the source of a git "
            "checkout is what git tracks or would add, as in the working tree."
        ),
    ] = False
    debian: Annotated[
        str | None,
        Meta(
            description="Source package and its version, `pytorch=2.6.0+dfsg-7`, from the archive "
            "that the root of [toolchain] was made of."
        ),
    ] = None
    archive: Annotated[
        str | None,
        Meta(
            description="Address of a tar or zip archive, or its path relative to this file. A "
            "single top directory is stripped."
        ),
    ] = None
    sdist: Annotated[
        str | None,
        Meta(description="Sdist in an index, such as `torch-scatter==2.1.2`, with its `sha256`."),
    ] = None
    sha256: Annotated[
        str | None, Meta(description="Digest of the archive or sdist, which identifies it.")
    ] = None
    patches: Annotated[
        list[str],
        Meta(
            description="Globs over files, relative to this file, to apply as `git apply` does, in "
            "order; files of one glob are sorted by name."
        ),
    ] = field(default_factory=list)
    submodules: Annotated[bool, Meta(description="Include git submodules.")] = True
    also: Annotated[
        list[DeclaredDownload],
        Meta(
            description="Downloads of the project's build: fetched with the source, "
            "and offered to the build of an extension, which has no network."
        ),
    ] = field(default_factory=list)


class RuleSpec(CellSpec, kw_only=True):
    """A partial cell that the matrix excludes or includes, and why."""

    reason: Annotated[str, Meta(description="Why this rule exists; shown in every plan.")]


class CoupleSpec(Value, kw_only=True):
    """Dimensions that vary together: lists of equal length, zipped (like conda's zip_keys)."""

    platform: Annotated[list[str] | None, Meta(description="Platforms.")] = None
    compute: Annotated[list[str] | None, Meta(description="Compute platforms.")] = None
    blas: Annotated[list[str] | None, Meta(description="BLAS (recipe pytorch).")] = None
    torch: Annotated[list[str] | None, Meta(description="Torch (recipe extension).")] = None
    variant: Annotated[list[str] | None, Meta(description="Read from the recipe.")] = None
    python: Annotated[list[str] | None, Meta(description="Pythons.")] = None
    package: Annotated[list[str] | None, Meta(description="Package kinds.")] = None


class MatrixSpec(Value, kw_only=True):
    """The values of each dimension; the cells are their product, changed by the rules."""

    platform: Annotated[list[str] | None, Meta(description="Platforms to build for.")] = None
    compute: Annotated[list[str] | None, Meta(description="cpu, CUDA, ROCm, xpu.")] = None
    blas: Annotated[list[str] | None, Meta(description="BLAS (recipe pytorch).")] = None
    torch: Annotated[
        list[str] | None, Meta(description="Torch releases to build against (extension).")
    ] = None
    variant: Annotated[list[str] | None, Meta(description="Read from the recipe.")] = None
    python: Annotated[list[str] | None, Meta(description="Pythons, as in wheel tags.")] = None
    package: Annotated[list[str] | None, Meta(description="Package kinds to deliver.")] = None
    couple: Annotated[list[CoupleSpec], Meta(description="Dimensions that vary together.")] = field(
        default_factory=list
    )
    exclude: Annotated[list[RuleSpec], Meta(description="Cells to leave out.")] = field(
        default_factory=list
    )
    include: Annotated[
        list[RuleSpec],
        Meta(description="Cells to add to the product, even if an exclusion matches them."),
    ] = field(default_factory=list)


class SubsetSpec(CellSpec, kw_only=True):
    """A named part of the matrix."""

    cells: Annotated[Globs | None, Meta(description="A selector of cells.")] = None
    choose: Annotated[
        Literal["all", "pairs"],
        Meta(
            description="`pairs`: only a few of these cells that cover every pair of values of "
            "two dimensions."
        ),
    ] = "all"


class NeedsSpec(Value, kw_only=True):
    """The needs of a stage's jobs from a machine."""

    memory: Annotated[str | None, Meta(description="Memory, such as `64 GB`.")] = None
    disk: Annotated[str | None, Meta(description="Disk space to work in, such as `80 GB`.")] = None
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
    check: Annotated[NeedsSpec, Meta(description="Inspecting the package.")] = NeedsSpec()
    smoke: Annotated[NeedsSpec, Meta(description="Installing and testing it.")] = NeedsSpec()
    publish: Annotated[NeedsSpec, Meta(description="Publishing to a channel.")] = NeedsSpec()


class OverrideSpec(CellSpec, kw_only=True):
    """Settings for the cells that a partial cell matches."""

    stage: Annotated[Globs, Meta(description="Stage or stages of the settings.")]
    env: Annotated[dict[str, str], Meta(description="Environment variables of the build.")] = field(
        default_factory=dict
    )
    cmake: Annotated[dict[str, str], Meta(description="CMake cache entries (`-D`).")] = field(
        default_factory=dict
    )
    archs: Annotated[
        list[str], Meta(description="Device architectures instead of the defaults.")
    ] = field(default_factory=list)
    pass_env: Annotated[
        list[str], Meta(description="Variables that these jobs inherit; no secrets.")
    ] = field(default_factory=list)
    backend: Annotated[
        Literal["setup.py", "scikit-build-core"] | None,
        Meta(description="Build backend of these cores."),
    ] = None
    cache: Annotated[
        bool | None,
        Meta(description="Use the compile cache; default: except for promoted packages."),
    ] = None
    needs: Annotated[NeedsSpec, Meta(description="Needs of these jobs instead.")] = NeedsSpec()


class StepSpec(Value, kw_only=True):
    """One command of a job. Words in braces, such as `{source}` and `{out}`, are replaced."""

    run: Annotated[Globs, Meta(description="Program and arguments, or a shell line.")]
    name: Annotated[str, Meta(description="Name in logs and progress displays.")] = ""
    cwd: Annotated[str, Meta(description="Working directory.")] = "{build}"
    env: Annotated[dict[str, str], Meta(description="Environment variables of this step.")] = field(
        default_factory=dict
    )
    outputs: Annotated[
        list[str], Meta(description="Globs below `{out}` that must match a file afterwards.")
    ] = field(default_factory=list)
    network: Annotated[bool, Meta(description="Allow network access, even in a sandbox.")] = False


class StepsSpec(Value, kw_only=True):
    """Steps that replace the recipe's; a job with an empty list does nothing."""

    source: Annotated[list[StepSpec] | None, Meta(description="Fetching the source.")] = None
    core: Annotated[list[StepSpec] | None, Meta(description="Compiling the C++ core.")] = None
    bindings: Annotated[list[StepSpec] | None, Meta(description="Compiling for one Python.")] = None
    package: Annotated[list[StepSpec] | None, Meta(description="Making the package.")] = None
    check: Annotated[list[StepSpec] | None, Meta(description="Inspecting the package.")] = None
    smoke: Annotated[list[StepSpec] | None, Meta(description="Installing and testing it.")] = None
    publish: Annotated[list[StepSpec] | None, Meta(description="Publishing to a channel.")] = None


class SandboxSpec(Value, kw_only=True):
    """How a job's steps are isolated from the machine."""

    kind: Annotated[
        Literal["none", "view", "bwrap"] | None,
        Meta(
            description="`bwrap`: steps see only the system, read-only, of the machine, have no "
            "network, and write only to the job's own directories; `view`: the work directory has "
            "the same path on every machine, without any protection; `none`. "
            "The default is `bwrap` where bubblewrap works."
        ),
    ] = None
    readable: Annotated[
        list[str], Meta(description="More files and directories that steps can read.")
    ] = field(default_factory=list)


class CondaToolchainSpec(Value, kw_only=True):
    """Conda environments, in which everything but the kernel is from channels."""

    channels: Annotated[
        list[str],
        Meta(
            description="Channels, the first one preferred: `conda-forge`, an address, or a "
            "directory relative to this file."
        ),
    ]
    build: Annotated[
        list[str],
        Meta(
            description="Requirements of the environment with programs, such as `gxx_linux-64`, "
            "`sysroot_linux-64`, `cmake`, `ninja`, `bash` and `coreutils`."
        ),
    ]
    host: Annotated[
        list[str],
        Meta(
            description="Requirements of the environment with libraries to link, besides Python: "
            "`libopenblas`, `openblas`, `setuptools`."
        ),
    ] = field(default_factory=list)


class ToolchainSpec(Value, kw_only=True):
    """Compilers and libraries. Those of the planning machine are part of every fingerprint."""

    compiler: Annotated[
        str, Meta(description="gcc, gcc-12, clang-16 …, or the path of a compiler.")
    ] = "gcc"
    cuda: Annotated[
        Literal["auto", "system", "pypi", "pypi-all"],
        Meta(
            description="Where CUDA comes from; `auto`: the system if its version fits, else PyPI. "
            "`pypi` has the compiler and the runtime, `pypi-all` all libraries of the toolkit, too."
        ),
    ] = "auto"
    blas: Annotated[
        Literal["auto", "system", "pypi"],
        Meta(description="Where MKL and OpenBLAS come from; `auto`: PyPI, in pinned versions."),
    ] = "auto"
    cache: Annotated[
        str | None,
        Meta(description="Compile cache for sccache: a directory, `redis://…` or `s3://…`."),
    ] = None
    root: Annotated[
        str | None,
        Meta(
            description="Directory with a root file system, relative to this file, such as "
            "`torchyard toolchain root` makes, a tar archive of one, or an OCI layout (`oci:DIR`): "
            "jobs run in it, with its compilers and libraries."
        ),
    ] = None
    conda: Annotated[
        CondaToolchainSpec | None,
        Meta(
            description="Conda environments that jobs run in instead, for conda packages. "
            "`torchyard lock` solves and locks them for each platform and Python."
        ),
    ] = None


class RootSpec(Value, kw_only=True):
    """The system that jobs run in, instead of the machine's."""

    image: Annotated[
        str | None,
        Meta(
            description="Container image, by its name in a registry: "
            "`quay.io/pypa/manylinux_2_28_x86_64`, `almalinux:8`, `registry.example.org/build`. "
            "`torchyard lock` writes its digest into torchyard.lock, unless the name has one "
            "(`NAME@sha256:…`). Jobs of generated CI run in it as their container."
        ),
    ] = None


class BuildSpec(Value, kw_only=True):
    """How to run the project's own build."""

    backend: Annotated[
        Literal["setup.py", "scikit-build-core"] | None,
        Meta(
            description="Build backend, which runs CMake and makes the wheels; default: with "
            "`tree`, that of the torch release, else `setup.py`."
        ),
    ] = None
    requires: Annotated[
        list[str] | None,
        Meta(
            description="Build requirements, each pinned: `cmake==3.31.10`; with "
            "` --hash=sha256:…` its files are verified. Default: with `tree`, those of the "
            "release. For an extension: what its pyproject.toml does not name, not pinned."
        ),
    ] = None
    tree: Annotated[
        str | None,
        Meta(
            description="Kind of tree, which sets defaults: a row of `data/trees.toml`, "
            "such as `full`, `debian` or `minimal`; with the row of `data/builds.toml` for the "
            "torch release."
        ),
    ] = None
    prepare: Annotated[
        list[str],
        Meta(description="Shell lines to run in the source before configuring."),
    ] = field(default_factory=list)
    linalg: Annotated[
        str | None,
        Meta(description="CMake target to build again without MAGMA, for conda packages."),
    ] = None
    label: Annotated[
        str | None,
        Meta(
            description="Local version of an extension's wheels, after the `+`; `{torch}` is the "
            "torch release without its dot, `{compute}` the compute platform. Default: "
            "`pt{torch}{compute}`, or `{compute}` if one wheel fits several torch releases."
        ),
    ] = None
    abi: Annotated[
        Literal["full", "abi3", "stable", "both"],
        Meta(
            description="ABI class of an extension: which releases one wheel fits several of. "
            "`abi3`: Pythons; `stable`: torch releases; `both`; `full`: neither. Such cells are "
            "served by the wheel for the oldest release."
        ),
    ] = "full"
    glibc: Annotated[
        str | None,
        Meta(
            description="Oldest glibc that the libraries must run with, such as `2.28`: a promise. "
            "A job whose libraries need a newer one fails, and names symbol, library and unit."
        ),
    ] = None


class CondaSpec(Value, kw_only=True):
    """How conda packages are made."""

    libraries: Annotated[
        Literal["bundled", "channel"],
        Meta(
            description="Where third-party libraries come from: `bundled`, in the packages; "
            "`channel`: packages of a conda channel provide those in `data/conda.toml`."
        ),
    ] = "bundled"
    license: Annotated[
        str,
        Meta(
            description="License of the project, an SPDX expression such as `BSD-3-Clause`, if "
            "neither `pyproject.toml` nor its wheel names one."
        ),
    ] = ""
    outputs: Annotated[
        dict[str, CondaOutput],
        Meta(description="Metadata and tests of packages, by their kind: `conda-libtorch`."),
    ] = field(default_factory=dict)
    channels: Annotated[
        list[str],
        Meta(
            description="Channels for recipe `conda`, the first one preferred: names, addresses, "
            "or directories relative to this file (`./channel`). Default: `channel_sources` of "
            "the recipe's variants, else `conda-forge`."
        ),
    ] = field(default_factory=list)


class CheckSpec(Value, kw_only=True):
    """How strictly packages are checked (stage check)."""

    policy: Annotated[
        str, Meta(description="Name of a built-in policy, or a policy file: `checks.toml`.")
    ] = "default"


class SmokeSpec(Value, kw_only=True):
    """How packages are tested (stage smoke)."""

    level: Annotated[
        Literal["import", "ops", "full"], Meta(description="How much of a package to test.")
    ] = "full"
    tests: Annotated[
        str | None,
        Meta(description="Directory with the project's own tests, relative to this file."),
    ] = None
    channels: Annotated[
        list[str],
        Meta(
            description="Conda channels for dependencies of conda packages, in order of priority: "
            "addresses, or directories relative to this file."
        ),
    ] = field(default_factory=list)
    indexes: Annotated[
        list[str],
        Meta(
            description="Simple indexes for dependencies of wheels, besides those that pip is set "
            "up for; `{release}` stands for the torch release of the cell, such as `2.13`, and "
            "`{compute}` for its compute platform."
        ),
    ] = field(default_factory=list)


class StoreSpec(Value, kw_only=True):
    """Where results are kept."""

    url: Annotated[
        str, Meta(description="`file://` or `s3://` address, or a directory relative to this file.")
    ] = ".torchyard/store"
    copies: Annotated[
        str | None,
        Meta(description="Size limit of the local cache on each machine, such as `50 GB`."),
    ] = None


class ChannelSpec(Value, kw_only=True):
    """A channel, to which packages are published."""

    url: Annotated[str, Meta(description="`file://` or `s3://` address, or a directory.")]
    subset: Annotated[
        str | None, Meta(description="Subset to publish here; default: the whole matrix.")
    ] = None
    promote_from: Annotated[
        str | None, Meta(description="The only channel to take packages from, by promotion.")
    ] = None
    external: Annotated[
        list[str],
        Meta(description="Globs over projects that packages may require from outside the channel."),
    ] = field(default_factory=list)
    upstream: Annotated[
        list[str],
        Meta(
            description="Simple indexes with the packages required from outside; `{compute}` "
            "stands for the compute platform of the package."
        ),
    ] = field(default_factory=list)
    smoke: Annotated[
        Literal["planned", "required", "off"],
        Meta(
            description="Packages that must have passed smoke tests: those of the plan, in its "
            "smoke jobs; every package; or none."
        ),
    ] = "planned"
    sandbox: Annotated[
        Literal["required", "any"],
        Meta(
            description="`required` refuses packages with any part built without a "
            "sandbox, as in containers that allow no namespaces."
        ),
    ] = "any"
    variants: Annotated[
        Literal["compute", "compute-blas"],
        Meta(description="What gets its own index; fixed once the channel exists."),
    ] = "compute"


_Column = Annotated[object, Meta(extra_json_schema={"description": "As in the shipped table."})]
RowsSpec = dict[str, dict[str, _Column]]
"""Rows by name; for a shipped row, only the keys to change."""


class TablesSpec(Value, kw_only=True):
    """Rows to add to or change in the shipped tables; see `data/`."""

    releases: Annotated[
        RowsSpec,
        Meta(
            description="Torch releases, such as `2.16`: for each compute platform, `libraries` "
            "with their pins and the version of `triton`."
        ),
    ] = field(default_factory=dict)
    pythons: Annotated[
        RowsSpec,
        Meta(description="Pythons, such as `cp316`: `version`, and whether `free_threaded`."),
    ] = field(default_factory=dict)
    compute: Annotated[
        RowsSpec,
        Meta(
            description="Versions of compute platforms, such as `cu133`: `version`, `archs` for "
            "each platform, and the other columns of `data/compute/`."
        ),
    ] = field(default_factory=dict)
    trees: Annotated[
        RowsSpec, Meta(description="Kinds of trees: `title`, and the `cmake` and `env` they need.")
    ] = field(default_factory=dict)
    builds: Annotated[
        RowsSpec,
        Meta(
            description="How to build trees from a torch release on: `backend`, and the pinned "
            "requirements that it `requires`."
        ),
    ] = field(default_factory=dict)


class FileSpec(Value, kw_only=True):
    """torchyard.toml: the one file that defines which binaries should exist."""

    project: Annotated[ProjectSpec, Meta(description="What is built.")]
    source: Annotated[SourceSpec, Meta(description="Where the code comes from.")]
    matrix: Annotated[MatrixSpec, Meta(description="Which packages should exist.")]
    subset: Annotated[
        dict[str, SubsetSpec], Meta(description="Named parts of the matrix, such as `pr`.")
    ] = field(default_factory=dict)
    override: Annotated[list[OverrideSpec], Meta(description="Settings for some cells.")] = field(
        default_factory=list
    )
    toolchain: Annotated[ToolchainSpec | None, Meta(description="Compilers and libraries.")] = None
    root: Annotated[RootSpec, Meta(description="The system that jobs run in.")] = RootSpec()
    build: Annotated[BuildSpec, Meta(description="How to run the project's own build.")] = (
        BuildSpec()
    )
    conda: Annotated[CondaSpec, Meta(description="How conda packages are made.")] = CondaSpec()
    check: Annotated[CheckSpec, Meta(description="How strictly packages are checked.")] = (
        CheckSpec()
    )
    smoke: Annotated[SmokeSpec, Meta(description="How packages are tested.")] = SmokeSpec()
    store: Annotated[StoreSpec, Meta(description="Where results are kept.")] = StoreSpec()
    channel: Annotated[
        dict[str, ChannelSpec], Meta(description="Where packages are published.")
    ] = field(default_factory=dict)
    requirements: Annotated[
        RequirementsSpec, Meta(description="What each stage needs from a machine.")
    ] = RequirementsSpec()
    steps: Annotated[StepsSpec, Meta(description="Your own commands, instead of the recipe's.")] = (
        StepsSpec()
    )
    sandbox: Annotated[SandboxSpec, Meta(description="How jobs are isolated.")] = SandboxSpec()
    ci: Annotated[CiSpec, Meta(description="Settings of generated CI files.")] = CiSpec()
    tables: Annotated[TablesSpec, Meta(description="Rows over those of the shipped tables.")] = (
        TablesSpec()
    )
