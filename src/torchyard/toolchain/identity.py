"""What this machine would compile with, named so that it can be compared."""

from collections.abc import Iterable
from contextlib import suppress

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
    digests = digests or Digests()
    parts: dict[str, str] = {}
    with suppress(HostError):
        compiler = find_compiler(toolchain.compiler, digests)
        parts["compiler"] = compiler.identity
        for variant in variants:
            with suppress(HostError):
                if blas := blas_for(toolchain, variant, compiler, tables, digests):
                    parts[f"blas/{variant}"] = blas.identity
    for compute in computes:
        with suppress(HostError):
            if kit := kit_for(toolchain, compute, tables, digests):
                parts[f"compute/{compute}"] = kit.identity
    return msgspec.structs.replace(toolchain, platform=platform_name(), parts=parts)


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
