"""The shapes of the tables under `data/`: versions, architectures and limits, as facts.

The code knows what a CUDA toolkit *is*; which ones there are, and what each can do, is data.
"""

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


class PackageKind(Value, kw_only=True):
    """A form in which a build is delivered."""

    title: str
    format: str
    per_python: bool
    recipes: tuple[str, ...]


class Cuda(Value, kw_only=True):
    """A CUDA toolkit: what it can compile for and with, and the driver its programs need."""

    version: str
    gcc_max: str
    clang_max: str
    driver_min_linux: str
    driver_min_windows: str | None = None
    archs: dict[str, tuple[str, ...]]


class Rocm(Value, kw_only=True):
    """A ROCm release and the GPUs it is compiled for."""

    version: str
    archs: dict[str, tuple[str, ...]]


class Plain(Value, kw_only=True):
    """A compute platform without an architecture list of its own: cpu, xpu."""

    platforms: tuple[str, ...]


class CudaPins(Value, kw_only=True):
    """The NVIDIA libraries that one torch release takes with one CUDA."""

    cudnn: str
    nccl: str | None = None


class XpuPins(Value, kw_only=True):
    """The oneAPI and Triton that one torch release takes for Intel GPUs."""

    oneapi: str
    triton: str


class Release(Value, kw_only=True):
    """What one torch release was built with."""

    triton: str | None = None
    rocm: tuple[str, ...]
    cuda: dict[str, CudaPins]
    xpu: XpuPins | None = None


class Tables(Value, kw_only=True):
    """All tables together, as planning needs them."""

    platforms: dict[str, Platform]
    pythons: dict[str, Python]
    packages: dict[str, PackageKind]
    cuda: dict[str, Cuda]
    rocm: dict[str, Rocm]
    plain: dict[str, Plain]
    releases: dict[str, Release]

    @property
    def computes(self) -> tuple[str, ...]:
        return (*self.plain, *self.cuda, *self.rocm)

    def platforms_of(self, compute: str) -> tuple[str, ...]:
        """The platforms that a compute platform is made for."""
        if compute in self.plain:
            return self.plain[compute].platforms
        table: dict[str, Cuda] | dict[str, Rocm] = self.cuda if compute in self.cuda else self.rocm
        return tuple(table[compute].archs)

    @property
    def blas(self) -> tuple[str, ...]:
        """Every BLAS that some platform has."""
        return tuple(dict.fromkeys(b for p in self.platforms.values() for b in p.blas))
