"""Install and check the toolchain of a job before its first step, or of a cell for users."""

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
from torchyard.toolchain.wheel_libraries import link_libraries, search_variables

ENV = "env"
_TOOLCHAIN = "toolchain"
_BLAS = "blas"


class ToolchainLayout(NamedTuple):
    """Where a toolchain is installed: in a folder, which its users see as `seen_as`.

    With `shared`, parts common to several folders are there, each by its identity.
    """

    folder: Path
    seen_as: str
    shared: Path | None = None

    def path_of(self, name: str, identity: str) -> Path:
        """Return the path of a part."""
        if self.shared is None:
            return self.folder / _TOOLCHAIN / name
        return self.shared / identity.replace(" ", "-").replace(":", "-")

    def seen_path_of(self, name: str, identity: str) -> str:
        """Return the path of a part as its users see it."""
        if self.shared is None:
            return f"{self.seen_as}/{_TOOLCHAIN}/{name}"
        return str(self.path_of(name, identity))


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
        libraries = self.kit.libraries if self.kit else {}
        return {name: part.identity for name, part in found.items() if part} | dict(libraries)


def equip(  # noqa: PLR0913 - one for each property of a job
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
    """Install the toolchain of a cell; repeating it changes nothing.

    Return its variables, which take precedence over all others: see `compose`.

    `parts` are the identities in the plan; `newest` are the newest host compilers that the toolkit
    accepts, by kind.
    """
    try:
        tools = find_tools(
            toolchain, compute=compute, source=source, blas=blas, tables=tables, digests=digests
        )
    except HostError as error:
        if needed(source, blas, tables) <= set(parts):  # the planning machine has them all
            raise ElsewhereError.of(error.diagnostics) from error
        raise
    compare(parts, tools.parts)
    python = interpreter.path if interpreter else sys.executable
    if tools.kit:
        check_host_compiler(f"{source.title} {source.version(compute)}", tools.compiler, newest)
        folder = layout.path_of(tools.kit.name, tools.kit.identity)
        tools.kit.prepare(folder, python=python, compiler=tools.compiler, archs=archs)
    if tools.blas:
        folder = layout.path_of(_BLAS, tools.blas.identity)
        blas_room.install_blas(tools.blas, folder, python)
    if interpreter:
        wheels = source.library_wheels() if tools.kit else ()
        make_environment(interpreter, requires, layout.folder / ENV, of_toolkit=wheels)
    env = build_variables(tools, archs, layout, platforms, python=interpreter is not None)
    if tools.kit and source.wheel_folders:
        link_libraries(layout.folder / ENV, source.wheel_folders)
        seen = f"{layout.seen_as}/{ENV}"
        found = search_variables(layout.folder / ENV, source.wheel_folders, seen)
        env = compose(env, found)
    if toolchain.cache:
        cache.prepare_cache(layout.folder)
        env |= cache.cache_variables(toolchain.cache, layout.folder, layout.seen_as)
        cache.stop(env, layout.folder)  # left by a killed run
    return env


def find_tools(  # noqa: PLR0913 - one for each property of a block
    toolchain: Toolchain,
    *,
    compute: str,
    source: ToolkitSource,
    blas: str,
    tables: Tables,
    digests: Digests | None = None,
) -> Tools:
    """Return the tools of this machine for a block, without installing any."""
    digests = digests or Digests()
    compiler = find_compiler(toolchain.compiler, digests)
    return Tools(
        compiler=compiler,
        kit=find_toolkit(source, toolchain, compute, digests),
        blas=blas_for(toolchain, blas, compiler, tables, digests),
    )


def needed(source: ToolkitSource, blas: str, tables: Tables) -> set[str]:
    """Return the parts that a plan must identify to compile a block."""
    parts = {"compiler": True, "compute": source.needs_toolkit, "blas": blas in tables.blas}
    return {name for name, is_needed in parts.items() if is_needed}


def compare(planned: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Fail if the plan was made for a different toolchain than this machine's."""
    for name, found in here.items():
        if name not in planned:
            msg = f"the plan names no {name}; this machine has {found}"
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
    kit = tools.kit.name if tools.kit else None
    switches = {source.cmake_switch: source.name for source in platforms if source.cmake_switch}
    env |= {switch: str(int(name == kit)) for switch, name in switches.items()}
    root = f"{layout.seen_as}/{ENV}"
    if python:
        env |= search(root) | {"VIRTUAL_ENV": root}
    for piece in _pieces(tools, archs, layout):
        env = compose(env, piece)
    return compose(env, {"PATH": f"{root}/bin"}) if python else env


def _pieces(tools: Tools, archs: Sequence[str], layout: ToolchainLayout) -> list[dict[str, str]]:
    """Return the variables of each part; installed parts come last, to take precedence."""
    pieces: list[tuple[bool, dict[str, str]]] = []
    if tools.blas:
        installed = tools.blas.origin == "pypi"
        folder = layout.seen_path_of(_BLAS, tools.blas.identity)
        pieces.append((installed, blas_room.blas_variables(tools.blas, folder)))
    if tools.kit:
        installed = tools.kit.origin == "pypi"
        folder = layout.seen_path_of(tools.kit.name, tools.kit.identity)
        env = tools.kit.variables(folder, compiler=tools.compiler, archs=archs)
        pieces.append((installed, env))
    return [env for _, env in sorted(pieces, key=lambda piece: piece[0])]
