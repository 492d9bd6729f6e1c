"""Facts of a source tree, read without running its code."""

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from torchyard.model.config import own_release
from torchyard.model.toml import parse_toml
from torchyard.toolchain.reading.source_text import read_beginning

_LONGEST_VERSION = 100
_MINIMUM = re.compile(
    r"^[ \t]*cmake_minimum_required[ \t]*\([ \t]*VERSION[ \t]+(\d+(?:\.\d+)*)",
    re.MULTILINE | re.IGNORECASE,
)
_COMPILERS = {
    "gcc": re.compile(r"COMPILER_IS_GNUCXX +AND [^)\n]{0,99}VERSION_LESS +\"?(\d+(?:\.\d+)*)"),
    "clang": re.compile(r"\"Clang\" +AND [^)\n]{0,99}VERSION_LESS +\"?(\d+(?:\.\d+)*)"),
}
SUBMODULE_PATH = re.compile(r"^[ \t]*path[ \t]*=[ \t]*(\S+)[ \t]*$", re.MULTILINE)
_ENTRY = re.compile(r"^([^#/\s][^:=\n]*):[A-Z]+=(.*)$", re.MULTILINE)


class TreeFacts(NamedTuple):
    """A tree's torch version, and the oldest versions of programs that it accepts."""

    version: str
    release: str
    is_torch: bool
    oldest: dict[str, str]
    submodules: tuple[str, ...]


def read_tree(folder: Path) -> TreeFacts:
    """Return a tree's facts; all are empty if the directory is no tree."""
    cmake = read_beginning(folder / "CMakeLists.txt")
    oldest = {"cmake": _MINIMUM.search(cmake)}
    oldest |= {kind: pattern.search(cmake) for kind, pattern in _COMPILERS.items()}
    is_torch = (folder / "torch/csrc").is_dir()
    version = read_beginning(folder / "version.txt").strip()[:_LONGEST_VERSION]
    return TreeFacts(
        version=version if is_torch else "",
        release=own_release(version) if is_torch else "",
        is_torch=is_torch,
        oldest={name: found[1] for name, found in oldest.items() if found},
        submodules=tuple(SUBMODULE_PATH.findall(read_beginning(folder / ".gitmodules"))),
    )


def python_range(folder: Path) -> str:
    """Return the range of Pythons in a tree's pyproject.toml, or an empty string."""
    return _stated(folder, "requires-python")


def stated_version(folder: Path) -> str:
    """Return a tree's version, from version.txt, or else pyproject.toml, or ""."""
    text = read_beginning(folder / "version.txt").strip()[:_LONGEST_VERSION]
    return text or _stated(folder, "version")


def _stated(folder: Path, key: str) -> str:
    """Return a value of [project] in pyproject.toml."""
    with suppress(ValueError):
        project = parse_toml(read_beginning(folder / "pyproject.toml")).get("project")
        if isinstance(project, dict):
            return str(project.get(key, ""))
    return ""


def cache_entries(build: Path) -> dict[str, str]:
    """Return the entries of a build directory's CMakeCache.txt."""
    return dict(_ENTRY.findall(read_beginning(build / "CMakeCache.txt")))
