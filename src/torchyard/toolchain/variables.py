"""Merges environment variables; search paths are joined."""

import os
from collections.abc import Mapping
from pathlib import Path

IMAGE = "TORCHYARD_IMAGE"
"""The variable with the name and digest of the image if this machine is its container."""

COMPILER = "gcc"
"""A directory on an image's PATH with this program is one of compilers."""


def _system_path() -> str:
    """Return the usual directories, after those with compilers of a container's image."""
    usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    given = os.environ.get("PATH", "").split(":") if IMAGE in os.environ else ()
    own = [path for path in given if path not in usual.split(":") and Path(path, COMPILER).exists()]
    return ":".join([*own, usual])


SYSTEM_PATH = _system_path()
"""The PATH of jobs for system programs, independent of the caller's."""

SYSTEM_PREFIX = "/usr"
"""The prefix that compilers, CMake and the loader search by default."""

LISTS = frozenset(
    {
        "PATH",
        "CMAKE_PREFIX_PATH",
        "CMAKE_INCLUDE_PATH",
        "CMAKE_LIBRARY_PATH",
        "LIBRARY_PATH",
        "LD_LIBRARY_PATH",
        "PKG_CONFIG_PATH",
    }
)
"""Variables with lists of folders; all others are plain values."""


def compose(base: Mapping[str, str], additions: Mapping[str, str]) -> dict[str, str]:
    """Return the base with additions: prepend to lists of folders, replace plain values.

    Repeating it changes nothing.
    """
    result = dict(base)
    for name, value in additions.items():
        result[name] = _joined(value, base.get(name, "")) if name in LISTS else value
    return result


def _joined(*lists: str) -> str:
    folders = (folder for list_ in lists for folder in list_.split(":") if folder)
    return ":".join(dict.fromkeys(folders))


def search(root: str, *, include: str = "include", library: str = "lib") -> dict[str, str]:
    """Return the variables that make CMake, the linker and the loader search a prefix.

    The system's is searched anyway. Named in a variable, CMake would find its ninja before the
    job's, whatever PATH says.
    """
    if root == SYSTEM_PREFIX:
        return {}
    return {
        "CMAKE_PREFIX_PATH": root,
        "CMAKE_INCLUDE_PATH": f"{root}/{include}",
        "CMAKE_LIBRARY_PATH": f"{root}/{library}",
        "LIBRARY_PATH": f"{root}/{library}",
        "LD_LIBRARY_PATH": f"{root}/{library}",
        "PKG_CONFIG_PATH": f"{root}/{library}/pkgconfig",
    }


def entries_variables(script: str) -> dict[str, str]:
    """Return the variables that pass a script of cache entries to CMake in each backend."""
    name = "CMAKE_PROJECT_TOP_LEVEL_INCLUDES"
    return {name: script, "CMAKE_ARGS": f"-D{name}={script}"}
