"""List all interpreters, compilers and libraries of this machine, for `torchyard toolchain`."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from torchyard.errors import HostError
from torchyard.host.machine import platform_name
from torchyard.model.tables import Tables
from torchyard.toolchain.blas import Blas, find_blas
from torchyard.toolchain.compilers import Compiler, find_compilers
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.interpreters import Interpreter, find_interpreters
from torchyard.toolchain.toolkit import Toolkit, ToolkitSource


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Everything installed or on PyPI; toolkits by the compute platform's name."""

    platform: str
    interpreters: tuple[Interpreter, ...]
    compilers: tuple[Compiler, ...]
    toolkits: dict[str, tuple[Toolkit, ...]]
    blas: tuple[Blas, ...]


def look_around(tables: Tables, platforms: Iterable[ToolkitSource], digests: Digests) -> Machine:
    """Return everything that can compile, without installing it."""
    platform = platform_name()
    compilers = find_compilers(digests)
    names = tables.platforms[platform].blas if platform in tables.platforms else ()
    blas: list[Blas] = []
    for name in names if compilers else ():
        for origin in ("system", "pypi"):
            with suppress(HostError):
                found = find_blas(name, origin, compilers[0], digests)
                blas += [found] if found.origin == origin else []
    return Machine(
        platform=platform,
        interpreters=find_interpreters(),
        compilers=compilers,
        toolkits={p.name: p.toolkits(digests) for p in platforms if p.cmake_switch},
        blas=tuple(blas),
    )
