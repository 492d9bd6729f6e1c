"""A very small PyTorch: numbers in lists, no tensors."""

from . import version  # noqa: TID252 - linted where it is not installed
from ._preload import preload  # noqa: TID252

preload()

from . import _C  # noqa: E402, TID252
from ._C import (  # noqa: E402, TID252
    Error,
    add,
    apply,
    get_num_threads,
    kernel_count,
    matmul,
)

__version__ = version.__version__
__all__ = [
    "_C",
    "Error",
    "__version__",
    "add",
    "apply",
    "get_num_threads",
    "kernel_count",
    "matmul",
    "version",
]
