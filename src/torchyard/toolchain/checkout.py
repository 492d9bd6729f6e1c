"""What a directory with a Python project says of itself, read without running any of its code."""

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from torchyard.model.identifier import PROJECT_NAME
from torchyard.toolchain.python_project import PYPROJECT
from torchyard.toolchain.undeclared_imports import undeclared_imports

_SETUP = "setup.py"
_CMAKE = "CMakeLists.txt"
_DECLARING = (PYPROJECT, _SETUP, "setup.cfg", "requirements.txt")
_LONGEST = 1 << 20
_USES_TORCH = re.compile(
    r"torch\.utils\.cpp_extension|find_package\(\s*Torch\b|^torch\b", re.MULTILINE
)
_CUDA = re.compile(r"\bCUDAExtension\b|\bcu_paths?\b|LANGUAGES[^)]{0,200}\bCUDA\b")
_NAME = re.compile(
    r"""\bname\s*=\s*['"]([A-Za-z0-9][\w.-]*)['"]|^__name__\s*=\s*['"]([\w.-]+)['"]""", re.MULTILINE
)
_VERSION = re.compile(r"""\b(?:__version__|version)\s*=\s*['"](\d[\w.!+]*)['"]""")


class FoundValue(NamedTuple):
    """A value, and the file that has it."""

    text: str
    file: str


class Checkout(NamedTuple):
    """A project that is compiled against torch; `cuda` is the file that says it has CUDA code.

    `undeclared` are modules that it imports, and none of its files of requirements names.
    """

    name: FoundValue | None
    version: FoundValue | None
    torch: str
    cuda: str | None
    requires_python: FoundValue | None
    undeclared: tuple[FoundValue, ...] = ()


def read_checkout(folder: Path) -> Checkout | None:
    """Return what a directory says; None if it is torch, or not compiled against it."""
    texts = {name: read_beginning(folder / name) for name in (PYPROJECT, _SETUP, _CMAKE)}
    table: Mapping[str, object] = {}
    with suppress(ValueError, RecursionError):
        table = tomllib.loads(texts[PYPROJECT])
    project, system = _table(table, "project"), _table(table, "build-system")
    requires = system.get("requires")
    listed = "\n".join(map(str, requires)) if isinstance(requires, list) else ""
    said = {PYPROJECT: listed, _SETUP: texts[_SETUP], _CMAKE: texts[_CMAKE]}
    torch = next((name for name, text in said.items() if _USES_TORCH.search(text)), None)
    name = _stated(project, "name") or _matched(_NAME, texts[_SETUP])
    if name is not None and not PROJECT_NAME.fullmatch(name.text):
        name = None
    if torch is None or (name is not None and name.text == "torch"):
        return None
    return Checkout(
        name=name,
        version=_stated(project, "version") or _matched(_VERSION, texts[_SETUP]),
        torch=torch,
        cuda=_cuda(folder, texts),
        requires_python=_stated(project, "requires-python"),
        undeclared=_undeclared(folder, name),
    )


def read_beginning(path: Path) -> str:
    """Return the first megabyte of a text file; empty if it can't be read, or is no file."""
    try:
        if not path.is_file():  # a pipe would never end
            return ""
        with path.open("rb") as file:
            return file.read(_LONGEST).decode(errors="replace")
    except OSError:
        return ""


def _table(table: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = table.get(key)
    return found if isinstance(found, dict) else {}


def _stated(project: Mapping[str, object], key: str) -> FoundValue | None:
    value = project.get(key)
    return FoundValue(value, PYPROJECT) if isinstance(value, str) else None


def _matched(pattern: re.Pattern[str], setup: str) -> FoundValue | None:
    found = pattern.search(setup)
    return FoundValue(next(filter(None, found.groups())), _SETUP) if found else None


def _undeclared(folder: Path, name: FoundValue | None) -> tuple[FoundValue, ...]:
    if name is None:
        return ()
    module = re.sub(r"[-.]", "_", name.text)
    declared = [read_beginning(folder / file) for file in _DECLARING]
    return tuple(
        FoundValue(*found)
        for place in (folder / module, folder / "src" / module)
        if place.resolve().is_relative_to(folder.resolve())
        for found in undeclared_imports(place, declared).items()
    )


def _cuda(folder: Path, texts: Mapping[str, str]) -> str | None:
    """Return the file that shows that a project has code for CUDA."""
    for name in (_SETUP, _CMAKE):
        if _CUDA.search(texts[name]):
            return name
    sources = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.cu"))
    return sources[0] if sources else None
