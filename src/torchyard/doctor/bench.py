"""A machine as a build sees it: variables, programs and the tree.

A job of torchyard has its own environment; a build by hand has the shell's.
"""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from torchyard.doctor.table import machine_table
from torchyard.errors import HostError
from torchyard.host.timed_run import TimedRun, run_with_timeout
from torchyard.model.toolchain import Toolchain
from torchyard.model.values import Value
from torchyard.toolchain.compilers import (
    Compiler,
    list_compilers,
    locate_compiler,
    matching_cxx,
    query_compiler,
)
from torchyard.toolchain.interpreters import Interpreter, query_interpreter
from torchyard.toolchain.variables import SYSTEM_PATH

Answered = TypeVar("Answered")

_SECONDS = 20.0
"""A program that needs longer to print its version is broken."""

_LAUNCHERS = ("ccache", "sccache", "distcc", "icecc")
_CC = ("cc", "gcc", "clang")
_CXX = ("c++", "g++", "clang++")
"""The names of compilers that CMake looks for, in its order."""

_ASK = """
import json, os, sys, sysconfig
from importlib.util import find_spec
from importlib.metadata import PackageNotFoundError, version
versions = {}
for name in sys.argv[1:]:
    try:
        versions[name] = version(name) or ""
    except PackageNotFoundError:
        pass
print(json.dumps({
    "program": sys.executable,
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "managed": os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")),
    "has_pip": find_spec("pip") is not None,
    "versions": versions,
}))
"""


class BuildDemand(Value, kw_only=True):
    """What a build needs from a machine; sizes are bytes.

    Without a `toolchain` it is a build by hand. `pins` are the programs that [build] installs,
    `newest` the newest host compilers of each compute, by kind; `blas_names` are all BLAS of the
    platform, the preferred one first. `settings` are each compute's block settings, including
    variables and CMake entries. Jobs that compile nothing need no compiler.
    """

    title: str
    release: str = ""
    is_torch: bool = True
    computes: tuple[str, ...] = ()
    archs: dict[str, tuple[str, ...]] = {}
    newest: dict[str, dict[str, str]] = {}
    blas: tuple[str, ...] = ()
    blas_names: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    pins: dict[str, str] = {}
    compiles: bool = True
    settings: dict[str, tuple[dict[str, str], ...]] = {}
    version: str = ""
    toolchain: Toolchain | None = None
    memory: int = 0
    disk: dict[str, int] = {}
    source: str = ""
    left_out: tuple[str, ...] = ()
    is_changed: bool = False
    """Whether patches or commands change the source before compiling."""
    work: str = "."
    store: str = ""
    """The directory of the store, if it is on this machine."""


class ShellPython(Value, kw_only=True):
    """A Python's environment: its prefix, and the versions of its distributions.

    pip refuses to install into one that is `managed` by the system.
    """

    program: str
    prefix: str
    base_prefix: str
    managed: bool
    has_pip: bool
    versions: dict[str, str]

    @property
    def is_own(self) -> bool:
        """Whether it is a virtual or conda environment, not the system's."""
        return self.prefix != self.base_prefix or Path(self.prefix, "conda-meta").is_dir()

    @property
    def takes_pip(self) -> bool:
        """Whether pip installs into it."""
        return self.is_own or not self.managed


class Bench:
    """A machine as a build sees it; each fact is determined once.

    `system` is the directory of proc and sys; tests pass recorded ones.
    """

    def __init__(
        self, demand: BuildDemand, env: Mapping[str, str], *, system: Path = Path("/")
    ) -> None:
        self.demand = demand
        self.env = dict(env)
        self.system = system
        self._kept: dict[Hashable, object] = {}

    @property
    def by_hand(self) -> bool:
        """Whether the build is started in a shell, not by torchyard."""
        return self.demand.toolchain is None

    @property
    def source(self) -> Path | None:
        """The tree, if it is on this machine."""
        return Path(self.demand.source) if self.demand.source else None

    @property
    def folders(self) -> list[str]:
        """The directories of PATH."""
        return [folder for folder in self.env.get("PATH", "").split(":") if folder]

    def once(self, key: Hashable, find: Callable[[], Answered]) -> Answered:
        """Return a function's result, which all checks share."""
        if key not in self._kept:
            self._kept[key] = find()
        return cast("Answered", self._kept[key])

    def which(self, name: str) -> Path | None:
        """Return the program that the build would use."""
        found = shutil.which(name, path=":".join(self.folders))
        return Path(found) if found else None

    def every(self, name: str) -> list[Path]:
        """Return all programs of a name on PATH, in its order."""
        found = (shutil.which(name, path=folder) for folder in self.folders)
        real = {Path(path).resolve(): Path(path) for path in reversed(list(filter(None, found)))}
        return list(reversed(real.values()))

    def run(
        self, *argv: str | Path, env: Mapping[str, str] | None = None, cwd: Path = Path("/")
    ) -> TimedRun:
        """Run a program in the build's environment, with a time limit."""
        whole = self.env if env is None else env
        words = [str(word) for word in argv]
        return run_with_timeout(words, cwd=cwd, env=whole, seconds=_SECONDS)

    def output(self, *argv: str | Path) -> str:
        """Return a program's output, or fail with the reason."""
        done = self.run(*argv)
        text = "\n".join(done.lines)
        if done.late:
            msg = f"`{argv[0]}` does not answer within {_SECONDS:g} s"
            raise HostError(msg)
        if done.code:
            last = text.strip().rpartition("\n")[2]
            detail = f": {last}" if last else ""
            msg = f"`{shlex.join(map(str, argv))}` fails ({_exit_text(done)}){detail}"
            raise HostError(msg)
        return text

    def program_version(self, program: Path, pattern: str = r"(\d+(?:\.\d+)+)") -> str:
        """Return the version that a program prints, or fail."""
        output = self.output(program, "--version")
        found = re.search(pattern, output)
        if found is None:
            msg = f"`{program} --version` names no version: {output.partition(chr(10))[0]}"
            raise HostError(msg)
        return found[1]

    @cached_property
    def compiler(self) -> Compiler:
        """The C and C++ compilers that the build would use, without a digest; or fail."""
        if self.demand.toolchain is not None:
            cc = locate_compiler(self.demand.toolchain.compiler)
            cxx = matching_cxx(cc)
        else:
            cc = self.named_compiler("CC", _CC)
            cxx = self.named_compiler("CXX", _CXX, beside=cc)
        kind, version = query_compiler(cc)
        return Compiler(kind=kind, cc=cc, cxx=cxx, version=version, digest="")

    def named_compiler(self, variable: str, names: tuple[str, ...], beside: str = "") -> str:
        """Return the compiler that a variable names, or else the first of `names`.

        Like CMake, search beside the other language's compiler first, then on PATH.
        """
        given = [word for word in shlex.split(self.env.get(variable, "")) if word[:1] != "-"]
        words = [word for word in given if Path(word).name not in _LAUNCHERS]
        near = (shutil.which(str(Path(beside).parent / name)) for name in names if beside)
        own = next(filter(None, near), None)
        if own and not words:
            return own
        found = next(filter(None, map(self.which, words[:1] or names)), None)
        if found is None:
            wanted = f"`{words[0]}`, as {variable} says" if words else f"`{names[0]}`"
            msg = f"there is no compiler {wanted}"
            raise HostError(msg)
        return str(found)

    @cached_property
    def python_program(self) -> Path | None:
        """The Python that a build by hand would use."""
        return self.which("python") or self.which("python3")

    @cached_property
    def interpreter(self) -> Interpreter:
        """The facts that this Python prints about itself, or fail."""
        if self.python_program is None:
            msg = "there is no `python` on PATH"
            raise HostError(msg)
        try:
            return query_interpreter(self.python_program)
        except msgspec.MsgspecError as error:
            msg = f"`{self.python_program}` is no CPython: {error}"
            raise HostError(msg) from error

    @cached_property
    def environment(self) -> ShellPython:
        """The environment of this Python, or fail."""
        return self.ask_environment()

    def ask_environment(self, *names: str) -> ShellPython:
        """Return the environment of this Python, with the versions of these distributions."""
        program = self.python_program or Path("python")
        output = self.output(program, "-c", _ASK, *names).rpartition("\n")[2]
        try:
            return msgspec.json.decode(output, type=ShellPython)
        except msgspec.MsgspecError as error:
            msg = f"`{program}` does not list its distributions: {output}"
            raise HostError(msg) from error

    def other_compilers(self) -> Iterator[Compiler]:
        """Yield the system's compilers, without digests."""
        for program in list_compilers():
            with suppress(HostError):
                kind, version = query_compiler(str(program))
                cxx = matching_cxx(str(program))
                yield Compiler(kind=kind, cc=str(program), cxx=cxx, version=version, digest="")

    def install(self, what: str, **words: str) -> str:
        """Return the command that installs a system package; "" if none is known."""
        managers = machine_table().managers.items()
        named = {name: m.packages[what] for name, m in managers if what in m.packages}
        return self.install_packages({name: text.format(**words) for name, text in named.items()})

    def install_packages(self, named: Mapping[str, str]) -> str:
        """Return the command that installs packages, from each manager's names for them.

        It is empty if the system's manager does not have them.
        """
        for name, manager in machine_table().managers.items():
            if name not in named or not shutil.which(name, path=SYSTEM_PATH):
                continue
            if not _succeeds(manager.trial.format(packages=named[name])):
                return ""
            sudo = "" if os.geteuid() == 0 else "sudo "
            return sudo + manager.install.format(packages=named[name])
        return ""

    @property
    def takes_pip(self) -> bool:
        """Whether pip installs into the Python of a build by hand."""
        try:
            return self.environment.takes_pip
        except HostError:
            return False

    def pip_install(self, *requirements: str) -> str:
        """Return the command that installs distributions into the Python of a build by hand.

        A Python that the system manages gets an environment first; one without pip uses uv.
        """
        python = shlex.quote(str(self.python_program or "python"))
        words = shlex.join(requirements)
        if not self.takes_pip:
            return f"{python} -m venv .venv && . .venv/bin/activate && pip install {words}"
        if not self.environment.has_pip:
            return f"uv pip install --python {python} {words}"
        return f"{python} -m pip install {words}"

    def without(self, variable: str, folder: str) -> str:
        """Return the command that removes a directory from a variable like PATH."""
        kept = [path for path in self.env.get(variable, "").split(":") if path and path != folder]
        if not kept:
            return f"unset {variable}"
        return f"export {variable}={shlex.quote(':'.join(kept))}"


@cache
def _succeeds(command: str) -> bool:
    """Return whether a system command succeeds; an empty one does."""
    words, env = shlex.split(command), {"PATH": SYSTEM_PATH}
    return not (words and run_with_timeout(words, cwd=Path("/"), env=env, seconds=_SECONDS).code)


def is_on(value: str) -> bool:
    """Return whether the value of a variable or CMake entry means "on"."""
    return value.lower() not in ("", "0", "off", "no", "false", "n")


def _exit_text(done: TimedRun) -> str:
    return done.signal or f"exit code {done.code}"
