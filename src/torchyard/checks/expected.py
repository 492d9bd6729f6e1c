"""What a package should be: what its name promises, and its order, if it carries one."""

from torchyard.model.values import Value
from torchyard.package.contents import Contents


class Expected(Value, kw_only=True):
    """What is known without looking at any library; empty where nothing is said.

    `archs` are as in the matrix: `9.0`, `9.0+PTX`, `gfx90a`.
    """

    name: str = ""
    version: str = ""
    """With its local part: `2.13.0+cu130`."""
    python: str = ""
    abi: str = ""
    platforms: tuple[str, ...] = ()
    """The platform tags of a wheel, or the subdir of a conda package."""
    compute: str = ""
    """cpu, cu130, rocm7.2 …, by the local version or the order; else by what the package needs."""
    archs: tuple[str, ...] = ()
    pins: dict[str, str] = {}
    """Versions of CUDA's libraries that the order's tables ask for."""


def expected_of(contents: Contents) -> Expected:
    """Read a package's name and its order."""
    raise NotImplementedError(contents.file_name)
