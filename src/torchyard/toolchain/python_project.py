"""How a Python project is built: the table [build-system] of its pyproject.toml (PEP 517, 518)."""

import tomllib
from collections.abc import Mapping
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from torchyard.errors import ConfigError

PYPROJECT = "pyproject.toml"
_LEGACY = "setuptools.build_meta:__legacy__"


class BuildSystem(NamedTuple):
    """What a project is built with: requirements, and a backend, maybe in the project itself."""

    requires: tuple[str, ...] = ("setuptools",)
    backend: str = _LEGACY
    backend_path: tuple[str, ...] = ()


def read_build_system(text: str | None) -> BuildSystem:
    """Return the build system of a pyproject.toml; setup.py's if there is no such file or table."""
    try:
        table = tomllib.loads(text or "").get("build-system")
    except tomllib.TOMLDecodeError as error:
        msg = f"{PYPROJECT} of the source is no TOML: {error}"
        raise ConfigError(msg, hint="mend it there, or by a patch in [source]") from error
    if not isinstance(table, Mapping):
        return BuildSystem()
    found = BuildSystem(
        requires=tuple(map(str, table.get("requires", ()))),
        backend=str(table.get("build-backend", _LEGACY)),
        backend_path=tuple(map(str, table.get("backend-path", ()))),
    )
    for requirement in found.requires:
        try:
            Requirement(requirement)
        except InvalidRequirement as error:
            msg = f"{PYPROJECT} of the source requires `{requirement}`: {error}"
            raise ConfigError(msg, hint="mend it there, or by a patch in [source]") from error
    return found


def build_wheel_program(system: BuildSystem, to: str) -> str:
    """Return a program in Python that makes a wheel of the project in the working directory."""
    module, _, attribute = system.backend.partition(":")
    lines = [
        "import importlib, os, sys",
        f"sys.path[:0] = [os.path.abspath(path) for path in {list(system.backend_path)!r}]",
        f"backend = importlib.import_module({module!r})",
        f"for name in {attribute.split('.') if attribute else []!r}:",
        "    backend = getattr(backend, name)",
        f"os.makedirs({to!r}, exist_ok=True)",
        f"print('made', backend.build_wheel({to!r}))",
    ]
    return "\n".join(lines)
