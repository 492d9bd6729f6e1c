"""A very small PyTorch: numbers in lists, no tensors."""

from . import version
from ._C import Error, _show_config, add, apply, get_num_threads, kernel_count, matmul

__version__ = version.__version__
__all__ = [
    "Error",
    "__version__",
    "_show_config",
    "add",
    "apply",
    "get_num_threads",
    "kernel_count",
    "matmul",
    "version",
]
