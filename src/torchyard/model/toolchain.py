"""The settings of `[toolchain]` and `[build]`."""

import re
from typing import Literal

from torchyard.model.abi import AbiClass
from torchyard.model.values import Value

_PINNED = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w.,-]+\])?==[\w.!+]+( --hash=sha256:[0-9a-f]{64})*")


def is_pinned(requirement: str) -> bool:
    """Return whether a requirement names one version of a package."""
    return _PINNED.fullmatch(requirement) is not None


REGISTRY = "docker://"
"""The prefix of a root that is an image of a registry: `docker://NAME@sha256:…`."""

Origin = Literal["auto", "system", "pypi"]
"""The origin of a part; `auto` means the system's toolkit if its version fits, and PyPI's BLAS."""

ToolkitOrigin = Literal[Origin, "pypi-all"]
"""The origin of a toolkit; PyPI's has a compiler and its runtime, or all of its libraries, too."""

Backend = Literal["setup.py", "scikit-build-core"]
"""A project's build backend, which runs CMake and makes wheels."""


class CondaToolchain(Value, kw_only=True):
    """Conda environments: requirements of the one with programs, and of that with libraries."""

    channels: tuple[str, ...]
    build: tuple[str, ...]
    host: tuple[str, ...] = ()


class Toolchain(Value, kw_only=True):
    """The `[toolchain]` table.

    `parts` are identities found on the planning machine, whose platform is `platform`: `compiler`,
    `compute/cu130` or `blas/mkl` for each compute platform and BLAS of the matrix, and
    `compute/cu130/cudnn` for libraries beside a system's toolkit. Those of programs have a digest;
    all are part of the fingerprints of jobs that use them. With a `root`, they come from the system
    in that directory, whose own identity is `root`. `toolkits` sets the origins of compute
    platforms' toolkits. With `conda`, all parts come from environments of the lock.
    """

    compiler: str = "gcc"
    blas: Origin = "auto"
    toolkits: dict[str, ToolkitOrigin] = {}
    cache: str | None = None
    root: str | None = None
    conda: CondaToolchain | None = None
    platform: str = ""
    parts: dict[str, str] = {}

    @property
    def has_own_system(self) -> bool:
        """Whether jobs run in another system than the machine's: a root, or conda environments."""
        return self.root is not None or self.conda is not None

    def origin_of(self, platform: str) -> ToolkitOrigin:
        """Return the origin of a compute platform's toolkit."""
        return self.toolkits.get(platform, "auto")

    def parts_of(self, platform: str, compute: str, blas: str) -> dict[str, str]:
        """Return the identities that a core depends on, by part."""
        if platform != self.platform:
            return {}
        keys = {
            "compiler": "compiler",
            "compute": f"compute/{compute}",
            "blas": f"blas/{blas}",
            "root": "root",
        }
        found = {name: self.parts[key] for name, key in keys.items() if key in self.parts}
        libraries = f"{keys['compute']}/"
        return found | {
            name.removeprefix(libraries): identity
            for name, identity in self.parts.items()
            if name.startswith(libraries)
        }


Libraries = Literal["bundled", "channel"]
"""Where the third-party libraries of conda packages come from."""


class Build(Value, kw_only=True):
    """The `[build]` table: how to run the project's own build.

    `preset` is the row of the table of builds for the file's kind of tree. `glibc` is the oldest
    one that libraries must run with. `gpu_env` and `cpu_env` are known variables of an extension,
    for builds for a GPU and for others.
    """

    backend: Backend = "setup.py"
    requires: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    tree: str | None = None
    preset: str | None = None
    linalg: str | None = None
    label: str = "pt{torch}{compute}"
    abi: AbiClass = AbiClass.FULL
    glibc: str | None = None
    gpu_env: dict[str, str] = {}
    cpu_env: dict[str, str] = {}
