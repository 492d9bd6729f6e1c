"""What the file says should compile, and how the project is built with it."""

from typing import Literal

from torchyard.model.values import Value

Origin = Literal["auto", "system", "pypi"]
"""Where a part comes from; `auto` takes the system's toolkit if its version fits, PyPI's BLAS."""

Backend = Literal["setup.py", "scikit-build-core"]
"""What makes a project's wheels, and runs CMake for it."""


class Toolchain(Value, kw_only=True):
    """One `[toolchain]` table.

    `parts` are identities, found on the machine that plans, which is a `platform`: `compiler`, and
    for each compute platform and BLAS of the matrix `compute/cu130`, `blas/mkl`. Each says what
    would be used, down to the digest of the programs; it is in the fingerprint of what it compiles.
    `toolkits` says where those of some compute platforms come from.
    """

    compiler: str = "gcc"
    blas: Origin = "auto"
    toolkits: dict[str, Origin] = {}
    cache: str | None = None
    platform: str = ""
    parts: dict[str, str] = {}

    def origin_of(self, platform: str) -> Origin:
        """Return where the toolkit of a compute platform comes from."""
        return self.toolkits.get(platform, "auto")

    def parts_of(self, platform: str, compute: str, blas: str) -> dict[str, str]:
        """The identities that a core depends on, by what they are."""
        if platform != self.platform:
            return {}
        keys = {"compiler": "compiler", "compute": f"compute/{compute}", "blas": f"blas/{blas}"}
        return {name: self.parts[key] for name, key in keys.items() if key in self.parts}


class Build(Value, kw_only=True):
    """One `[build]` table: how the project's own build is driven."""

    backend: Backend = "setup.py"
    requires: tuple[str, ...] = ()
    linalg: str | None = None
