"""Merges environment variables; search paths are joined."""

import os
from collections.abc import Mapping
from pathlib import Path

IMAGE = "TORCHYARD_IMAGE"
"""The variable that names the image that this machine is a container of, with its digest."""

COMPILER = "gcc"
"""Programs beside this one are compilers, in a directory that an image has on its PATH."""


def _system_path() -> str:
    """Return the usual directories, after those where a container's image has its compilers."""
    usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    given = os.environ.get("PATH", "").split(":") if IMAGE in os.environ else ()
    own = [one for one in given if one not in usual.split(":") and Path(one, COMPILER).exists()]
    return ":".join([*own, usual])


SYSTEM_PATH = _system_path()
"""The PATH of jobs for system programs, independent of the caller's."""

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
"""Variables that are lists of folders; all others are plain values."""


def compose(base: Mapping[str, str], additions: Mapping[str, str]) -> dict[str, str]:
    """Return the base with the additions: prepended to lists of folders, replacing plain values.

    Repeating it changes nothing.
    """
    result = dict(base)
    for name, value in additions.items():
        result[name] = _joined(value, base.get(name, "")) if name in LISTS else value
    return result


def _joined(*lists: str) -> str:
    folders = (folder for one in lists for folder in one.split(":") if folder)
    return ":".join(dict.fromkeys(folders))


def search(root: str, *, include: str = "include", library: str = "lib") -> dict[str, str]:
    """Return the variables that make CMake, the linker and the loader search a prefix."""
    return {
        "CMAKE_PREFIX_PATH": root,
        "CMAKE_INCLUDE_PATH": f"{root}/{include}",
        "CMAKE_LIBRARY_PATH": f"{root}/{library}",
        "LIBRARY_PATH": f"{root}/{library}",
        "LD_LIBRARY_PATH": f"{root}/{library}",
        "PKG_CONFIG_PATH": f"{root}/{library}/pkgconfig",
    }


def entries_variables(script: str) -> dict[str, str]:
    """Return the variables by which each backend gives CMake a script of cache entries."""
    name = "CMAKE_PROJECT_TOP_LEVEL_INCLUDES"
    return {name: script, "CMAKE_ARGS": f"-D{name}={script}"}
