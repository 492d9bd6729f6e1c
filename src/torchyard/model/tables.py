"""The rows of the tables under `data/`: versions, architectures and limits.

The code defines what a platform or a package kind is; which ones exist is data.
"""

import re

from torchyard.model.recipe import Dimension, Recipe
from torchyard.model.toolchain import Backend
from torchyard.model.values import Value
from torchyard.model.version import version_numbers

TORCH_PREFIX = "torch"
"""A torch release as the variant of an extension's cell: `torch2.13`."""
TORCH_RELEASE = re.compile(rf"{TORCH_PREFIX}(\d+\.\d+)")
_PYTHON = re.compile(r"cp(\d)(\d+)(t?)")


class Platform(Value, kw_only=True):
    """A target system and processor of packages."""

    wheel_tag: str
    conda_subdir: str
    zip: str = ""
    blas: tuple[str, ...]
    built: bool = True
    """Whether torchyard runs jobs on it, or only plans, checks and publishes packages for it."""


class Python(Value, kw_only=True):
    """An interpreter, named as in a wheel's tags."""

    version: str
    free_threaded: bool = False


def python_of(tag: str) -> Python | None:
    """Return the interpreter of a tag such as `cp313t`, or None."""
    found = _PYTHON.fullmatch(tag)
    if found is None:
        return None
    return Python(version=f"{found[1]}.{found[2]}", free_threaded=bool(found[3]))


class Format(Value, kw_only=True):
    """The properties of a package format that planning needs; see `data/formats.toml`."""

    implementation: str
    library_pins: bool
    channels: bool
    split: bool
    platform: dict[str, str] = {}
    modules: dict[str, str] = {}


class PackageKind(Value, kw_only=True):
    """A form in which a build is delivered.

    If only builds for GPUs have it, `gpu_only` names the alternative for others. `obstacle` is why
    it can't be made.
    """

    title: str
    format: str
    per_python: bool
    pinned: bool
    gpu_only: str = ""
    obstacle: str = ""


class Compute(Value, kw_only=True):
    """A value of the dimension `compute`, such as cu130, as described by its compute platform.

    `platform` is the compute platform's name, `source` the table of the row. With `has_origin`,
    `[toolchain]` sets where its toolkit comes from. If it is not `pinned`, every torch release has
    it without a row. `compilers` are the newest host compilers that its toolkit accepts, by kind.
    `translate` is a script of PyTorch's tree to run before CMake. `env` has variables of its
    toolkit, with folders still to be filled in.
    """

    platform: str
    source: str
    version: str = ""
    pinned: bool = True
    platforms: tuple[str, ...] = ()
    archs: dict[str, tuple[str, ...]] = {}
    has_origin: bool = False
    is_gpu: bool = True
    compilers: dict[str, str] = {}
    translate: str = ""
    env: dict[str, str] = {}


class Release(Value, kw_only=True):
    """The pins of a torch release, for each of its compute platforms.

    `pythons` are those with wheels, if known; `archs` are the architectures of
    its device code on each platform, if they differ from the compute platform's.
    """

    libraries: dict[str, dict[str, str]]
    triton: dict[str, str] = {}
    pythons: tuple[str, ...] = ()
    archs: dict[str, dict[str, tuple[str, ...]]] = {}


class SourceTree(Value, kw_only=True):
    """A kind of PyTorch tree, and the entries that its build needs."""

    title: str
    cmake: dict[str, str] = {}
    env: dict[str, str] = {}


class BuildPreset(Value, kw_only=True):
    """How to build trees of torch from a release on."""

    backend: Backend
    requires: tuple[str, ...] = ()


class Tables(Value, kw_only=True):
    """All tables together, as planning needs them."""

    platforms: dict[str, Platform]
    pythons: dict[str, Python]
    formats: dict[str, Format]
    packages: dict[str, PackageKind]
    compute: dict[str, Compute]
    releases: dict[str, Release]
    trees: dict[str, SourceTree] = {}
    builds: dict[str, BuildPreset] = {}
    variants: tuple[str, ...] = ()
    """The variants of a conda recipe, whose outputs are then the packages."""

    def known(self, recipe: Recipe) -> dict[Dimension, tuple[str, ...]]:
        """Return all possible values of each dimension of a recipe."""
        packages = (name for name in self.packages if recipe.makes(name))
        values = {
            Dimension.PLATFORM: tuple(self.platforms),
            Dimension.COMPUTE: tuple(self.compute),
            Dimension.BLAS: self.blas,
            Dimension.TORCH: tuple(f"{TORCH_PREFIX}{release}" for release in self.releases),
            Dimension.VARIANT: self.variants,
            Dimension.PYTHON: tuple(self.pythons),
            Dimension.PACKAGE: tuple(packages),
        }
        return {dimension: values[dimension] for dimension in recipe.dimensions}

    def preset_for(self, release: str) -> str | None:
        """Return the row of `builds` for a torch release; None if it is older than all rows."""
        names = (name for name in self.builds if version_numbers(name) <= version_numbers(release))
        return max(names, key=version_numbers, default=None)

    @property
    def blas(self) -> tuple[str, ...]:
        """All BLAS of all platforms."""
        return tuple(dict.fromkeys(b for p in self.platforms.values() for b in p.blas))
