"""Interfaces of the toolkits that compile device code, and of their finders.

The compute platforms (`torchyard.compute`) implement both, each for its vendor.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from torchyard.model.toolchain import ToolkitOrigin
from torchyard.toolchain.compilers import Compiler
from torchyard.toolchain.digests import Digests


class Toolkit(Protocol):
    """Compiles for the GPUs of a compute platform; its root is relative if it is from PyPI."""

    @property
    def name(self) -> str:
        """The compute platform's name."""

    @property
    def origin(self) -> Literal["system", "pypi"]:
        """Its origin."""

    @property
    def root(self) -> str:
        """Its folder."""

    @property
    def identity(self) -> str:
        """Name, version, origin and digest, independent of its location."""

    @property
    def libraries(self) -> Mapping[str, str]:
        """The identities of the system's libraries beside it, such as cuDNN, by name."""

    def prepare(
        self, folder: Path, *, python: str, compiler: Compiler, archs: Sequence[str]
    ) -> None:
        """Install it in the folder if it is from PyPI.

        Fail if it can't compile for the architectures.
        """

    def variables(self, folder: str, *, compiler: Compiler, archs: Sequence[str]) -> dict[str, str]:
        """Return the variables for steps that use it, given its folder."""


class ToolkitSource(Protocol):
    """The part of a compute platform that toolchains use."""

    name: str
    title: str
    needs_toolkit: bool
    cmake_switch: str
    cmake_archs: str
    wheel_folders: str

    def library_wheels(self) -> Collection[str]:
        """Return the names of wheels with its libraries."""

    def version(self, compute: str) -> str:
        """Return the version in the name of a compute: `13.0` for cu130."""

    def find_toolkit(self, compute: str, origin: ToolkitOrigin, digests: Digests) -> Toolkit | None:
        """Return the toolkit for a compute, without installing it."""

    def toolkits(self, digests: Digests) -> tuple[Toolkit, ...]:
        """Return all toolkits on this machine or on PyPI."""

    def device_codes(self, archs: Iterable[str]) -> Iterator[str]:
        """Yield the codes of a list of architectures."""
