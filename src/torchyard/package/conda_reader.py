"""Reading conda packages."""

from collections.abc import Callable
from typing import BinaryIO

from torchyard.package.limits import Faults, Limits
from torchyard.package.members import Found


def read_conda(file: BinaryIO, name: str, limits: Limits, progress: Callable[[int], None]) -> Found:
    raise NotImplementedError(name)
