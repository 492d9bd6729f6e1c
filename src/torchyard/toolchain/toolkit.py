"""Interfaces of the toolkits that compile device code, and of what finds them.

The compute platforms (`torchyard.compute`) implement both; nothing here knows a vendor.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol

from torchyard.model.toolchain import Origin
from torchyard.toolchain.compilers import Compiler
from torchyard.toolchain.digests import Digests


class Toolkit(Protocol):
    """Compiles for the GPUs of one compute platform; its root is relative if it comes from PyPI."""

    @property
    def name(self) -> str:
        """The compute platform's name."""

    @property
    def origin(self) -> Literal["system", "pypi"]:
        """Where it comes from."""

    @property
    def root(self) -> str:
        """Its folder."""

    @property
    def identity(self) -> str:
        """Name, version, origin and digest; independent of where it is installed."""

    def prepare(
        self, folder: Path, *, python: str, compiler: Compiler, archs: Sequence[str]
    ) -> None:
        """Install it in the folder if it comes from PyPI.

        Fail if it does not compile for the architectures.
        """

    def variables(self, folder: str, *, compiler: Compiler, archs: Sequence[str]) -> dict[str, str]:
        """Return the variables that steps need to use it, given the folder it is installed in."""


class ToolkitSource(Protocol):
    """A compute platform, as far as toolchains are concerned."""

    name: str
    title: str
    needs_toolkit: bool
    cmake_switch: str
    cmake_archs: str

    def version(self, compute: str) -> str:
        """Return the version in the name of a compute: `13.0` for cu130."""

    def find_toolkit(self, compute: str, origin: Origin, digests: Digests) -> Toolkit | None:
        """Return the toolkit that would compile for a compute; nothing is installed."""

    def toolkits(self, digests: Digests) -> tuple[Toolkit, ...]:
        """Return all toolkits that this machine has, or could have from PyPI."""

    def device_codes(self, archs: Iterable[str]) -> Iterator[str]:
        """Yield the codes that a list of architectures means."""
