"""Modules that a project imports and does not declare, read without running any of its code."""

import ast
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

_MOST_FILES = 500
_MOST_MODULES = 20
_MOST_BYTES = 4 << 20
_UNREADABLE = (OSError, SyntaxError, ValueError, RecursionError, MemoryError)


def undeclared_imports(package: Path, declared: Iterable[str]) -> dict[str, str]:
    """Return the modules that files of a package import whatever happens, with one such file each.

    Left out are torch, modules of Python itself, and those whose name is in one of the texts that
    declare requirements. Imports in a function, after `if` or after `try` may be optional.
    """
    own = {package.name, "torch"}
    named = set(re.findall(r"\w+", "\n".join(declared).lower().replace("-", "_")))
    found: dict[str, str] = {}
    for path in _files(package):
        for module in _imports(path):
            if module.lower() not in named and module not in own and len(found) < _MOST_MODULES:
                found.setdefault(module, path.relative_to(package.parent).as_posix())
    return found


def _files(package: Path) -> Iterator[Path]:
    """Yield the modules of a package, in order; links that lead out of it are no part of it."""
    root, left = package.resolve(), _MOST_BYTES
    for path in islice(sorted(package.rglob("*.py")), _MOST_FILES):
        with suppress(OSError):
            if path.is_file() and path.resolve().is_relative_to(root):
                left -= path.stat().st_size
                if left >= 0:
                    yield path


def _imports(path: Path) -> Iterator[str]:
    try:
        with warnings.catch_warnings(action="ignore"):
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
