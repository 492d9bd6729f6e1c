"""What this machine would compile with, named so that it can be compared."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec

from torchyard.errors import HostError
from torchyard.host.machine import platform_name
from torchyard.model.tables import Tables
from torchyard.model.toolchain import Toolchain
from torchyard.toolchain.blas import Blas, find_blas
from torchyard.toolchain.compilers import Compiler, find_compiler
from torchyard.toolchain.cuda import Toolkit, find_cuda
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.rocm import Rocm, find_rocm

Part = TypeVar("Part")

PLAIN = "cpu"
"""The compute platform that needs a compiler and nothing else."""


def identify(
    toolchain: Toolchain,
    *,
    computes: Iterable[str],
    variants: Iterable[str],
    tables: Tables,
    digests: Digests | None = None,
) -> Toolchain:
    """Say what this machine would use; what it does not have is left out."""
    found = survey(toolchain, computes=computes, variants=variants, tables=tables, digests=digests)
    parts = {name: part for name, part in found.items() if isinstance(part, str)}
    return msgspec.structs.replace(toolchain, platform=platform_name(), parts=parts)


def survey(
    toolchain: Toolchain,
    *,
    computes: Iterable[str],
    variants: Iterable[str],
    tables: Tables,
    digests: Digests | None = None,
) -> dict[str, str | HostError]:
    """What this machine would use for each part, or why it can't."""
    digests = digests or Digests()
    compiler = _attempt(partial(find_compiler, toolchain.compiler, digests))
    finders: dict[str, Callable[[], Toolkit | Rocm | Blas | None]] = {
        f"compute/{compute}": partial(kit_for, toolchain, compute, tables, digests)
        for compute in computes
    }
    if isinstance(compiler, Compiler):
        finders |= {
            f"blas/{variant}": partial(blas_for, toolchain, variant, compiler, tables, digests)
            for variant in variants
        }
    with ThreadPoolExecutor(4) as pool:
        answers = dict(zip(finders, pool.map(_attempt, finders.values()), strict=True))
    found = {"compiler": compiler, **answers}
    return {
        name: part if isinstance(part, HostError) else part.identity
        for name, part in found.items()
        if part is not None
    }


def _attempt(find: Callable[[], Part]) -> Part | HostError:
    try:
        return find()
    except HostError as error:
        return error


def kit_for(
    toolchain: Toolchain, compute: str, tables: Tables, digests: Digests
) -> Toolkit | Rocm | None:
    """What compiles for a compute platform; nothing more than a compiler for `cpu`."""
    if compute in tables.cuda:
        return find_cuda(tables.cuda[compute].version, toolchain.cuda, digests)
    if compute in tables.rocm:
        return find_rocm(tables.rocm[compute].version, digests)
    if compute == PLAIN:
        return None
    msg = f"torchyard can't set up a toolchain for {compute}"
    raise HostError(msg, hint="use steps of your own for it, on a machine that has one")


def blas_for(
    toolchain: Toolchain, variant: str, compiler: Compiler, tables: Tables, digests: Digests
) -> Blas | None:
    """The BLAS that a variant asks for; none if it is a torch release."""
    if variant not in tables.blas:
        return None
    return find_blas(variant, toolchain.blas, compiler, digests)
