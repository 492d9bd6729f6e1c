"""Modules that a project imports and does not declare, read without running any of its code."""

import ast
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

_MOST_FILES = 500
_LONGEST = 1 << 20
_UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)


def undeclared_imports(package: Path, declared: Iterable[str]) -> dict[str, str]:
    """Return the modules that files of a package import whatever happens, with one such file each.

    Left out are torch, modules of Python itself, and those whose name is in one of the texts that
    declare requirements. Imports in a function, after `if` or after `try` may be optional.
    """
    named = "\n".join(declared).lower().replace("-", "_")
    found: dict[str, str] = {}
    for path in sorted(islice(package.rglob("*.py"), _MOST_FILES)):
        for module in _imports(path):
            if module.lower() not in named and module not in (package.name, "torch"):
                found.setdefault(module, path.relative_to(package.parent).as_posix())
    return found


def _imports(path: Path) -> Iterator[str]:
    try:
        if not path.is_file() or path.stat().st_size > _LONGEST:
            return
        body = ast.parse(path.read_bytes()).body
    except _UNREADABLE:
        return
    for statement in body:
        names = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            names = [statement.module]
        for name in names:
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names:
                yield top
