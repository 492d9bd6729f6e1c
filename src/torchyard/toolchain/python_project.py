"""The build system of a Python project: [build-system] of pyproject.toml (PEP 517, 518)."""

from collections.abc import Mapping
from typing import NamedTuple

from torchyard.errors import ConfigError
from torchyard.host.files import read_data
from torchyard.model.requirement import is_requirement
from torchyard.model.toml import parse_toml

PYPROJECT = "pyproject.toml"
_LEGACY = "setuptools.build_meta:__legacy__"
_PARALLEL, _LINKS = "backend/parallel_compile.py", "backend/link_commands.py"
_FIX = "fix it there, or by a patch in [source]"


class BuildSystem(NamedTuple):
    """A project's build requirements, and its backend, which may be in the project itself."""

    requires: tuple[str, ...] = ("setuptools",)
    backend: str = _LEGACY
    backend_path: tuple[str, ...] = ()


def read_build_system(text: str | None) -> BuildSystem:
    """Return the build system of a pyproject.toml; setup.py's without such a file or table."""
    try:
        table = parse_toml(text or "").get("build-system")
    except ValueError as error:
        msg = f"{PYPROJECT} of the source is not TOML: {error}"
        raise ConfigError(msg, hint=_FIX) from error
    if not isinstance(table, Mapping):
        return BuildSystem()
    backend = table.get("build-backend", _LEGACY)
    if "requires" not in table or not isinstance(backend, str):
        msg = f"[build-system] in {PYPROJECT} of the source needs `requires`, and a backend by name"
        raise ConfigError(msg, hint=_FIX)
    found = BuildSystem(
        requires=_texts(table, "requires"),
        backend=backend,
        backend_path=_texts(table, "backend-path"),
    )
    for requirement in found.requires:
        if not is_requirement(requirement):
            msg = f"{PYPROJECT} of the source requires `{requirement}`, which is malformed"
            raise ConfigError(msg, hint=_FIX)
    return found


def _texts(table: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Return a list in a table; empty without the key."""
    given = table.get(key, [])
    if isinstance(given, list) and all(isinstance(text, str) for text in given):
        return tuple(given)
    msg = f"`{key}` in {PYPROJECT} of the source is not a list of strings"
    raise ConfigError(msg, hint=_FIX)


def build_wheel_program(system: BuildSystem, to: str, links: str) -> str:
    """Return a program in Python that makes a wheel of the project in the working directory.

    It notes the link commands of setuptools in the file `links`.
    """
    module, _, attribute = system.backend.partition(":")
    lines = [
        read_data(_PARALLEL),
        read_data(_LINKS),
        "import importlib, os, sys",
        f"sys.path[:0] = [os.path.abspath(path) for path in {list(system.backend_path)!r}]",
        f"backend = importlib.import_module({module!r})",
        f"for name in {attribute.split('.') if attribute else []!r}:",
        "    backend = getattr(backend, name)",
        "if 'setuptools' in sys.modules:",
        f"    note_links({links!r})",
        "if 'setuptools' in sys.modules and os.environ.get('MAX_JOBS') != '1':",
        "    compile_in_parallel(os.environ.get('MAKEFLAGS', ''))",
        f"os.makedirs({to!r}, exist_ok=True)",
        "try:",
        f"    print('made', backend.build_wheel({to!r}))",
        "except SystemExit as error:  # its exit code may equal one of torchyard's",
        "    sys.exit(1 if error.code and isinstance(error.code, int) else error.code)",
    ]
    program = "\n".join(lines)
    return f"exec(compile({program!r}, '<torchyard>', 'exec'))"  # setup.py is `<string>`
