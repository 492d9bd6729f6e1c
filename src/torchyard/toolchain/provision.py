"""Lay out what one job compiles with, and check it, before its first step."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchyard.errors import ElsewhereError, HostError, PlanError
from torchyard.model.tables import Tables
from torchyard.model.toolchain import Toolchain
from torchyard.model.values import Value
from torchyard.toolchain import blas as blas_room
from torchyard.toolchain import cache, cuda, rocm
from torchyard.toolchain.blas import Blas
from torchyard.toolchain.compilers import Compiler, find_compiler
from torchyard.toolchain.cuda import Toolkit
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.identity import PLAIN, blas_for, kit_for
from torchyard.toolchain.interpreters import Interpreter
from torchyard.toolchain.pypi import make_environment
from torchyard.toolchain.rocm import Rocm
from torchyard.toolchain.variables import compose, search

ENV = "env"
CUDA = "toolchain/cuda"
BLAS = "toolchain/blas"


class Tools(Value, kw_only=True):
    """All that a job compiles with."""

    compiler: Compiler
    kit: Toolkit | Rocm | None = None
    blas: Blas | None = None

    @property
    def parts(self) -> dict[str, str]:
        """What they are, in the words of a task's settings."""
        found = {"compiler": self.compiler, "compute": self.kit, "blas": self.blas}
        return {name: one.identity for name, one in found.items() if one}


def equip(  # noqa: PLR0913 - a job has as many sides
    parts: Mapping[str, str],
    *,
    toolchain: Toolchain,
    compute: str,
    blas: str,
    archs: Sequence[str],
    interpreter: Interpreter | None,
    requires: Sequence[str],
    folder: Path,
    seen_as: str,
    tables: Tables,
    digests: Digests | None = None,
) -> dict[str, str]:
    """Lay out what a job needs in its folder; done again, it finds all there.

    Return the variables that its steps must see, in front of all others: see `compose`.

    `parts` are what the plan was made for; steps know the folder by the name `seen_as`.
    """
    try:
        tools = find_tools(toolchain, compute, blas, tables, digests)
    except HostError as error:
        if needed(compute, blas, tables) <= set(parts):  # so the machine that planned has it
            raise ElsewhereError.of(error.diagnostics) from error
        raise
    compare(parts, tools.parts)
    python = interpreter.path if interpreter else sys.executable
    if isinstance(tools.kit, Toolkit):
        cuda.check_pair(tools.kit.release, tools.compiler, tables)
        cuda.lay_out(tools.kit, folder / CUDA, python)
        cuda.check_archs(tools.kit, folder / CUDA, archs)
    elif tools.kit:
        rocm.check_archs(tools.kit, archs)
    if tools.blas:
        blas_room.lay_out(tools.blas, folder / BLAS, python)
    if interpreter:
        make_environment(interpreter, requires, folder / ENV)
    env = variables(tools, archs, seen_as, python=interpreter is not None)
    if toolchain.cache:
        cache.lay_out(folder)
        env |= cache.variables(toolchain.cache, folder, seen_as)
        cache.stop(env, folder)  # a run that was killed may have left its server
    return env


def find_tools(
    toolchain: Toolchain, compute: str, blas: str, tables: Tables, digests: Digests | None = None
) -> Tools:
    """What this machine would compile a block with; nothing is installed for it."""
    digests = digests or Digests()
    compiler = find_compiler(toolchain.compiler, digests)
    return Tools(
        compiler=compiler,
        kit=kit_for(toolchain, compute, tables, digests),
        blas=blas_for(toolchain, blas, compiler, tables, digests),
    )


def needed(compute: str, blas: str, tables: Tables) -> set[str]:
    """What a plan must name for a block to be compiled."""
    parts = {"compiler": True, "compute": compute != PLAIN, "blas": blas in tables.blas}
    return {name for name, is_needed in parts.items() if is_needed}


def compare(planned: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Fail if the plan was made for another toolchain than that of this machine."""
    for name, found in here.items():
        if name not in planned:
            msg = f"the plan does not say which {name} it was made for; this machine has {found}"
            raise PlanError(msg, hint="plan again on a machine that has one")
        if planned[name] != found:
            msg = f"this machine has {found}, but the plan was made for {planned[name]}"
            hint = "run the job on a machine like the one that planned, or plan again here"
            raise ElsewhereError(msg, hint=hint)


def variables(tools: Tools, archs: Sequence[str], seen_as: str, *, python: bool) -> dict[str, str]:
    """What steps must see: the environment first, then the toolchain."""
    env = {
        "CC": tools.compiler.cc,
        "CXX": tools.compiler.cxx,
        "USE_CUDA": str(int(isinstance(tools.kit, Toolkit))),
        "USE_ROCM": str(int(isinstance(tools.kit, Rocm))),
    }
    for piece in _pieces(tools, archs, seen_as):
        env = compose(env, piece)
    if python:
        root = f"{seen_as}/{ENV}"
        env = compose(env, search(root) | {"PATH": f"{root}/bin", "VIRTUAL_ENV": root})
    return env


def _pieces(tools: Tools, archs: Sequence[str], seen_as: str) -> list[dict[str, str]]:
    """The variables of each part; those of the job's own folder come last, to be found first."""
    pieces: list[tuple[bool, dict[str, str]]] = []
    if tools.blas:
        own = tools.blas.origin == "pypi"
        pieces.append((own, blas_room.variables(tools.blas, f"{seen_as}/{BLAS}")))
    if isinstance(tools.kit, Toolkit):
        own = tools.kit.origin == "pypi"
        env = cuda.variables(tools.kit, f"{seen_as}/{CUDA}", tools.compiler)
        pieces.append((own, env | {"TORCH_CUDA_ARCH_LIST": ";".join(archs)}))
    elif tools.kit:
        env = rocm.variables(tools.kit)
        pieces.append((False, env | {"PYTORCH_ROCM_ARCH": ";".join(archs)}))
    return [env for _, env in sorted(pieces, key=lambda piece: piece[0])]
