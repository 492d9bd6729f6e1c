"""Find the Pythons of this machine; each is run to describe itself."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import msgspec

from torchyard.errors import HostError
from torchyard.host.process import capture
from torchyard.host.system_view import in_root
from torchyard.model.values import Value

PythonOrigin = Literal["pyenv", "uv", "system", "path", "conda"]
"""Where an interpreter was found; of equal versions, the first in this order wins."""

_CONDA = ("miniconda3", "miniforge3", "mambaforge", "micromamba", "anaconda3")
_PROGRAM = re.compile(r"python3(\.\d+t?)?")
_ASK = """
import json, os, sys, sysconfig
base = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
get = sysconfig.get_config_var
include = sysconfig.get_paths()["include"]
above, name = os.path.split(include)
pyconfig = os.path.join(above, get("MULTIARCH") or "", name, "pyconfig.h")  # as Debian has it
if not os.path.exists(pyconfig):
    pyconfig = sysconfig.get_config_h_filename()
print(json.dumps({
    "path": base,
    "implementation": sys.implementation.name,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "soabi": get("SOABI") or "",
    "ext_suffix": get("EXT_SUFFIX") or "",
    "include": include,
    "pyconfig": pyconfig,
    "prefix": sys.base_prefix,
    "free_threaded": bool(get("Py_GIL_DISABLED")),
}))
"""


class Interpreter(Value, kw_only=True):
    """A CPython, and the paths to compile against it."""

    path: str
    version: str
    soabi: str
    ext_suffix: str
    include: str
    pyconfig: str
    prefix: str
    free_threaded: bool
    implementation: str = "cpython"
    origin: PythonOrigin = "path"

    @property
    def tag(self) -> str:
        """Its name in a wheel's tags, such as `cp312` or `cp313t`."""
        major, minor, _ = self.version.split(".")
        return f"cp{major}{minor}{'t' * self.free_threaded}"

    @property
    def headers(self) -> bool:
        """Whether extensions can be compiled against it."""
        return Path(self.include, "Python.h").is_file() and Path(self.pyconfig).is_file()


_DECODER = msgspec.json.Decoder(Interpreter)
"""Created at import: msgspec may crash if several threads are the first to decode a type."""


def interpreter_for(tag: str) -> Interpreter:
    """Return the best interpreter with this tag that extensions can be compiled against."""
    return best_of(tag, find_interpreters())


def best_of(tag: str, found: tuple[Interpreter, ...]) -> Interpreter:
    """Return the newest usable interpreter with this tag, or fail with all objections."""
    named = [python for python in found if python.tag == tag]
    good = [python for python in named if not objection_to(python)]
    if good:
        return max(good, key=lambda python: (_numbers(python.version), -_rank(python)))
    version = f"{tag[2]}.{tag[3:]}"
    hint = f"run `pyenv install {version}` or `uv python install {version}`"
    if named:
        reasons = "; ".join(f"{python.path} {objection_to(python)}" for python in named)
        msg = f"no Python {version} of this machine can be compiled against: {reasons}"
    else:
        others = ", ".join(dict.fromkeys(python.version for python in found)) or "none"
        msg = f"there is no Python {version} on this machine; found: {others}"
    raise HostError(msg, hint=hint)


def objection_to(python: Interpreter) -> str:
    """Return why an interpreter is unusable, or an empty string."""
    if not python.headers:
        return f"has no headers in {python.include}"
    text = Path(python.pyconfig).read_text(encoding="utf-8", errors="replace")
    if python.free_threaded != bool(re.search(r"^#define Py_GIL_DISABLED 1", text, re.MULTILINE)):
        return f"contradicts {python.pyconfig} on being free-threaded"
    if not python.ext_suffix.startswith(f".cpython-{python.tag.removeprefix('cp')}-"):
        return f"names its extensions *{python.ext_suffix}, which is not the ABI of {python.tag}"
    if platform.system() == "Linux" and f"-{platform.machine()}-" not in python.ext_suffix:
        return f"is for another machine: its extensions are named *{python.ext_suffix}"
    return ""


def running_interpreter() -> Interpreter:
    """Return an interpreter with headers for jobs that need any, preferably the running one.

    In a root, the running one is not the root's.
    """
    running = None if in_root() else _ask(Path(sys.executable), "path")
    if running is not None and running.headers:
        return running
    for other in find_interpreters():
        if other.headers:
            return other
    msg = "no Python of this machine has its headers, which CMake needs"
    raise HostError(msg, hint="install python3-dev, or run `uv python install`")


@cache
def find_interpreters() -> tuple[Interpreter, ...]:
    """Return every CPython of this machine, the newest first."""
    origins: dict[Path, PythonOrigin] = {}
    for source, program in _candidates():
        with suppress(PermissionError):
            if program.is_file():
                origins.setdefault(program.resolve(), source)
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(_ask, origins, origins.values())
    found: dict[str, Interpreter] = {}
    for answer in answers:
        if answer and answer.implementation == "cpython":
            found.setdefault(answer.path, answer)
    return tuple(sorted(found.values(), key=lambda p: (*_oldness(p), _rank(p), p.path)))


def query_interpreter(program: Path) -> Interpreter:
    """Run an interpreter, and return its description."""
    answer = capture([str(program), "-I", "-c", _ASK], cwd=Path("/"))
    return _DECODER.decode(answer)


def _ask(program: Path, source: PythonOrigin) -> Interpreter | None:
    """Return the interpreter's description, or None if it is broken or older than 3.4."""
    try:
        answer = query_interpreter(program)
    except (HostError, OSError, msgspec.MsgspecError):
        return None
    return msgspec.structs.replace(answer, origin=source)


def _candidates() -> Iterator[tuple[PythonOrigin, Path]]:
    """Yield programs that may be interpreters, in order of priority."""
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    for program in _fitting(pyenv, "versions/*/bin/python3"):
        yield "pyenv", program
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    managed = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv/python")
    for program in _fitting(managed, "*/bin/python3"):
        yield "uv", program
    for program in _system_programs():
        yield "system", program
    for folder in map(Path, os.get_exec_path()):
        if folder != pyenv / "shims":  # links to the versions above
            for program in _programs(folder):
                yield "path", program
    for root in _conda_roots(home):
        for program in _fitting(root, "bin/python3") + _fitting(root, "envs/*/bin/python3"):
            yield "conda", program


def _system_programs() -> list[Path]:
    """Return the interpreters of the system; manylinux images have theirs in /opt/python."""
    ours = [*_programs(Path("/usr/bin")), *_programs(Path("/usr/local/bin"))]
    return [*_fitting(Path("/opt/python"), "*/bin/python3"), *ours]


def _conda_roots(home: Path) -> Iterator[Path]:
    if active := os.environ.get("CONDA_PREFIX"):
        yield Path(active)
    yield Path("/opt/conda")
    yield from (home / name for name in _CONDA)


def _programs(folder: Path) -> list[Path]:
    return [path for path in _fitting(folder, "python3*") if _PROGRAM.fullmatch(path.name)]


def _fitting(folder: Path, pattern: str) -> list[Path]:
    """Return the files that match a pattern; empty if the folder is not readable."""
    with suppress(PermissionError):
        return sorted(folder.glob(pattern))
    return []


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _oldness(python: Interpreter) -> tuple[int, ...]:
    return tuple(-number for number in _numbers(python.version))


def _rank(python: Interpreter) -> int:
    return get_args(PythonOrigin).index(python.origin)
