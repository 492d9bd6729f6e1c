"""The settings of `[toolchain]` and `[build]`."""

import re
from typing import Literal

from torchyard.model.abi import AbiClass
from torchyard.model.values import Value

_PINNED = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w.,-]+\])?==[\w.!+]+( --hash=sha256:[0-9a-f]{64})*")


def is_pinned(requirement: str) -> bool:
    """Return whether a requirement is one version of a package, and not an option or a path."""
    return _PINNED.fullmatch(requirement) is not None


REGISTRY = "docker://"
"""Begins the place of a root that is an image of a registry: `docker://NAME@sha256:…`."""

Origin = Literal["auto", "system", "pypi"]
"""Where a part comes from; `auto`: the system's toolkit if its version fits, and PyPI's BLAS."""

Backend = Literal["setup.py", "scikit-build-core"]
"""A project's build backend, which runs CMake and makes wheels."""


class Toolchain(Value, kw_only=True):
    """One `[toolchain]` table.

    `parts` are identities found on the planning machine, which is a `platform`: `compiler`, and
    for each compute platform and BLAS of the matrix `compute/cu130`, `blas/mkl`. Each contains
    the digest of the programs, and is part of the fingerprint of what it compiles. With a `root`,
    they are those of the system in that directory, whose own identity is `root`.
    `toolkits` sets where the toolkits of some compute platforms come from.
    """

    compiler: str = "gcc"
    blas: Origin = "auto"
    toolkits: dict[str, Origin] = {}
    cache: str | None = None
    root: str | None = None
    platform: str = ""
    parts: dict[str, str] = {}

    def origin_of(self, platform: str) -> Origin:
        """Return where the toolkit of a compute platform comes from."""
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
        return {name: self.parts[key] for name, key in keys.items() if key in self.parts}


Libraries = Literal["bundled", "channel"]
"""Where the third-party libraries of conda packages come from."""


class Build(Value, kw_only=True):
    """One `[build]` table: how the project's own build is driven.

    `preset` is the row of the table of builds that the file's kind of tree is built by. `glibc` is
    the oldest one that libraries have to run with. `gpu_env` and `cpu_env` are variables that an
    extension is known to read, if built for a GPU or not.
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
