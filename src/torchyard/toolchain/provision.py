"""Installs and checks the toolchain of one job before its first step."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchyard.errors import ElsewhereError, HostError, PlanError
from torchyard.model.tables import Tables
from torchyard.model.toolchain import Toolchain
from torchyard.toolchain import blas as blas_room
from torchyard.toolchain import cache
from torchyard.toolchain.blas import Blas
from torchyard.toolchain.compilers import Compiler, check_host_compiler, find_compiler
from torchyard.toolchain.digests import Digests
from torchyard.toolchain.identity import blas_for, find_toolkit
from torchyard.toolchain.interpreters import Interpreter
from torchyard.toolchain.pypi import make_environment
from torchyard.toolchain.toolkit import Toolkit, ToolkitSource
from torchyard.toolchain.variables import compose, search

ENV = "env"
BLAS = "toolchain/blas"


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The compiler, toolkit and BLAS of a job."""

    compiler: Compiler
    kit: Toolkit | None = None
    blas: Blas | None = None

    @property
    def parts(self) -> dict[str, str]:
        """Their identities, by the keys of a task's settings."""
        found = {"compiler": self.compiler, "compute": self.kit, "blas": self.blas}
        return {name: one.identity for name, one in found.items() if one}


def equip(  # noqa: PLR0913 - a job has as many sides
    parts: Mapping[str, str],
    *,
    toolchain: Toolchain,
    compute: str,
    source: ToolkitSource,
    blas: str,
    archs: Sequence[str],
    interpreter: Interpreter | None,
    requires: Sequence[str],
    folder: Path,
    seen_as: str,
    platforms: Iterable[ToolkitSource],
    tables: Tables,
    newest: Mapping[str, str],
    digests: Digests | None = None,
) -> dict[str, str]:
    """Install what a job needs in its folder; repeating it changes nothing.

    Return the variables for its steps, which take precedence over all others: see `compose`.

    `parts` are the identities in the plan; `seen_as` is the folder's path as steps see it; `newest`
    are the newest host compilers that the toolkit takes, by kind.
    """
    try:
        tools = find_tools(
            toolchain, compute=compute, source=source, blas=blas, tables=tables, digests=digests
        )
    except HostError as error:
        if needed(source, blas, tables) <= set(parts):  # so the planning machine has it
            raise ElsewhereError.of(error.diagnostics) from error
        raise
    compare(parts, tools.parts)
    python = interpreter.path if interpreter else sys.executable
    if tools.kit:
        check_host_compiler(f"{source.title} {source.version(compute)}", tools.compiler, newest)
        place = folder / _place(tools.kit)
        tools.kit.prepare(place, python=python, compiler=tools.compiler, archs=archs)
    if tools.blas:
        blas_room.install_blas(tools.blas, folder / BLAS, python)
    if interpreter:
        make_environment(interpreter, requires, folder / ENV)
    env = build_variables(tools, archs, seen_as, platforms, python=interpreter is not None)
    if toolchain.cache:
        cache.prepare_cache(folder)
        env |= cache.cache_variables(toolchain.cache, folder, seen_as)
        cache.stop(env, folder)  # of an earlier run that was killed
    return env


def find_tools(  # noqa: PLR0913 - what is compiled, with what
    toolchain: Toolchain,
    *,
    compute: str,
    source: ToolkitSource,
    blas: str,
    tables: Tables,
    digests: Digests | None = None,
) -> Tools:
    """Return what this machine would compile a block with; nothing is installed."""
    digests = digests or Digests()
    compiler = find_compiler(toolchain.compiler, digests)
    return Tools(
        compiler=compiler,
        kit=find_toolkit(source, toolchain, compute, digests),
        blas=blas_for(toolchain, blas, compiler, tables, digests),
    )


def needed(source: ToolkitSource, blas: str, tables: Tables) -> set[str]:
    """Return the parts that a plan must identify for a block to be compiled."""
    parts = {"compiler": True, "compute": source.needs_toolkit, "blas": blas in tables.blas}
    return {name for name, is_needed in parts.items() if is_needed}


def compare(planned: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Fail if the plan was made for a different toolchain than this machine's."""
    for name, found in here.items():
        if name not in planned:
            msg = f"the plan does not say which {name} it was made for; this machine has {found}"
            raise PlanError(msg, hint="plan again on a machine that has one")
        if planned[name] != found:
            msg = f"this machine has {found}, but the plan was made for {planned[name]}"
            hint = "run the job on a machine like the one that planned, or plan again here"
            raise ElsewhereError(msg, hint=hint)


def build_variables(
    tools: Tools,
    archs: Sequence[str],
    seen_as: str,
    platforms: Iterable[ToolkitSource],
    *,
    python: bool,
) -> dict[str, str]:
    """Return the variables for steps: the Python environment before the toolchain."""
    env = {"CC": tools.compiler.cc, "CXX": tools.compiler.cxx}
    for one in platforms:
        if one.cmake_switch:
            env[one.cmake_switch] = str(int(tools.kit is not None and tools.kit.name == one.name))
    for piece in _pieces(tools, archs, seen_as):
        env = compose(env, piece)
    if python:
        root = f"{seen_as}/{ENV}"
        env = compose(env, search(root) | {"PATH": f"{root}/bin", "VIRTUAL_ENV": root})
    return env


def _place(kit: Toolkit) -> str:
    """Return the folder of a toolkit, relative to the job's."""
    return f"toolchain/{kit.name}"


def _pieces(tools: Tools, archs: Sequence[str], seen_as: str) -> list[dict[str, str]]:
    """Return the variables of each part; those in the job's folder last, to take precedence."""
    pieces: list[tuple[bool, dict[str, str]]] = []
    if tools.blas:
        own = tools.blas.origin == "pypi"
        pieces.append((own, blas_room.blas_variables(tools.blas, f"{seen_as}/{BLAS}")))
    if tools.kit:
        own = tools.kit.origin == "pypi"
        place = f"{seen_as}/{_place(tools.kit)}"
        env = tools.kit.variables(place, compiler=tools.compiler, archs=archs)
        pieces.append((own, env))
    return [env for _, env in sorted(pieces, key=lambda piece: piece[0])]
