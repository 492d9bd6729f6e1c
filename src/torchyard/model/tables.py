"""The shapes of the tables under `data/`: versions, architectures and limits, as facts.

The code knows what a CUDA toolkit *is*; which ones there are, and what each can do, is data.
"""

from torchyard.model.recipe import Dimension, Recipe
from torchyard.model.values import Value

TORCH_PREFIX = "torch"
"""A torch release as the variant of an extension's cell: `torch2.13`."""


class Platform(Value, kw_only=True):
    """A system and processor that packages are made for."""

    wheel_tag: str
    conda_subdir: str
    blas: tuple[str, ...]


class Python(Value, kw_only=True):
    """An interpreter, named as in a wheel's tags."""

    version: str
    free_threaded: bool = False


class Format(Value, kw_only=True):
    """A package format, as far as planning has to know it; see `data/formats.toml`."""

    library_pins: bool
    channels: bool
    split: bool
    platform: dict[str, str] = {}


class PackageKind(Value, kw_only=True):
    """A form in which a build is delivered."""

    title: str
    format: str
    per_python: bool
    pinned: bool
    recipes: tuple[str, ...]


class Cuda(Value, kw_only=True):
    """A CUDA toolkit: what it can compile for and with, and the driver its programs need.

    `driver_family` is the oldest branch of drivers that programs of all its minor versions run on,
    with what that branch can do.
    """

    version: str
    gcc_max: str
    clang_max: str
    driver_family: str
    driver_min_linux: str
    driver_min_windows: str | None = None
    archs: dict[str, tuple[str, ...]]


class Rocm(Value, kw_only=True):
    """A ROCm release and the GPUs it is compiled for."""

    version: str
    archs: dict[str, tuple[str, ...]]


class Plain(Value, kw_only=True):
    """A compute platform without an architecture list of its own.

    One that is not `pinned` needs no row in a torch release: every release has it.
    """

    pinned: bool
    platforms: tuple[str, ...]


class Release(Value, kw_only=True):
    """What one torch release was built with, for each compute platform that it was built for."""

    libraries: dict[str, dict[str, str]]
    triton: dict[str, str] = {}


class Tables(Value, kw_only=True):
    """All tables together, as planning needs them."""

    platforms: dict[str, Platform]
    pythons: dict[str, Python]
    formats: dict[str, Format]
    packages: dict[str, PackageKind]
    cuda: dict[str, Cuda]
    rocm: dict[str, Rocm]
    plain: dict[str, Plain]
    releases: dict[str, Release]

    @property
    def computes(self) -> tuple[str, ...]:
        return (*self.plain, *self.cuda, *self.rocm)

    def known(self, recipe: Recipe) -> dict[Dimension, tuple[str, ...]]:
        """Every value that each dimension of a recipe could have."""
        packages = (name for name, kind in self.packages.items() if recipe.name in kind.recipes)
        values = {
            Dimension.PLATFORM: tuple(self.platforms),
            Dimension.COMPUTE: self.computes,
            Dimension.BLAS: self.blas,
            Dimension.TORCH: tuple(f"{TORCH_PREFIX}{release}" for release in self.releases),
            Dimension.PYTHON: tuple(self.pythons),
            Dimension.PACKAGE: tuple(packages),
        }
        return {dimension: values[dimension] for dimension in recipe.dimensions}

    def platforms_of(self, compute: str) -> tuple[str, ...]:
        """The platforms that a compute platform is made for."""
        if compute in self.plain:
            return self.plain[compute].platforms
        table: dict[str, Cuda] | dict[str, Rocm] = self.cuda if compute in self.cuda else self.rocm
        return tuple(table[compute].archs)

    def pinned(self, compute: str) -> bool:
        """Whether a compute platform comes with libraries that each torch release chooses."""
        return compute not in self.plain or self.plain[compute].pinned

    @property
    def blas(self) -> tuple[str, ...]:
        """Every BLAS that some platform has."""
        return tuple(dict.fromkeys(b for p in self.platforms.values() for b in p.blas))
