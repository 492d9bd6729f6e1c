"""Installs and checks the toolchain of a job before its first step, or of a cell for people."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
_TOOLCHAIN = "toolchain"
_BLAS = "blas"


class ToolchainLayout(NamedTuple):
    """Where a toolchain is installed: in a folder, which those that use it see as `seen_as`.

    With `shared`, parts that are equal for several folders are there, each by its identity.
    """

    folder: Path
    seen_as: str
    shared: Path | None = None

    def place_of(self, name: str, identity: str) -> Path:
        """Return where a part is installed."""
        if self.shared is None:
            return self.folder / _TOOLCHAIN / name
        return self.shared / identity.replace(" ", "-").replace(":", "-")

    def seen_place_of(self, name: str, identity: str) -> str:
        """Return where a part is, as its users see it."""
        if self.shared is None:
            return f"{self.seen_as}/{_TOOLCHAIN}/{name}"
        return str(self.place_of(name, identity))


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
    layout: ToolchainLayout,
    platforms: Iterable[ToolkitSource],
    tables: Tables,
    newest: Mapping[str, str],
    digests: Digests | None = None,
) -> dict[str, str]:
    """Install what compiles a cell; repeating it changes nothing.

    Return the variables for what compiles it, which take precedence over all others: see `compose`.

    `parts` are the identities in the plan; `newest` are the newest host compilers that the toolkit
    takes, by kind.
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
        folder = layout.place_of(tools.kit.name, tools.kit.identity)
        tools.kit.prepare(folder, python=python, compiler=tools.compiler, archs=archs)
    if tools.blas:
        folder = layout.place_of(_BLAS, tools.blas.identity)
        blas_room.install_blas(tools.blas, folder, python)
    if interpreter:
        make_environment(interpreter, requires, layout.folder / ENV)
    env = build_variables(tools, archs, layout, platforms, python=interpreter is not None)
    if toolchain.cache:
        cache.prepare_cache(layout.folder)
        env |= cache.cache_variables(toolchain.cache, layout.folder, layout.seen_as)
        cache.stop(env, layout.folder)  # of an earlier run that was killed
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
    layout: ToolchainLayout,
    platforms: Iterable[ToolkitSource],
    *,
    python: bool,
) -> dict[str, str]:
    """Return the variables for steps: the environment's programs, and the toolchain's libraries."""
    env = {"CC": tools.compiler.cc, "CXX": tools.compiler.cxx}
    for one in platforms:
        if one.cmake_switch:
            env[one.cmake_switch] = str(int(tools.kit is not None and tools.kit.name == one.name))
    root = f"{layout.seen_as}/{ENV}"
    if python:
        env |= search(root) | {"VIRTUAL_ENV": root}
    for piece in _pieces(tools, archs, layout):
        env = compose(env, piece)
    return compose(env, {"PATH": f"{root}/bin"}) if python else env


def _pieces(tools: Tools, archs: Sequence[str], layout: ToolchainLayout) -> list[dict[str, str]]:
    """Return the variables of each part; those that were installed last, to take precedence."""
    pieces: list[tuple[bool, dict[str, str]]] = []
    if tools.blas:
        own = tools.blas.origin == "pypi"
        folder = layout.seen_place_of(_BLAS, tools.blas.identity)
        pieces.append((own, blas_room.blas_variables(tools.blas, folder)))
    if tools.kit:
        own = tools.kit.origin == "pypi"
        folder = layout.seen_place_of(tools.kit.name, tools.kit.identity)
        env = tools.kit.variables(folder, compiler=tools.compiler, archs=archs)
        pieces.append((own, env))
    return [env for _, env in sorted(pieces, key=lambda piece: piece[0])]
