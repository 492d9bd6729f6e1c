"""What packages take from a project's source: its licences, its description and its tests."""

import shutil
from pathlib import Path

from torchyard.host.files import link_or_copy
from torchyard.package.sbom.owner import project_licenses
from torchyard.toolchain.python_project import PYPROJECT

PROJECT = "project"
"""The folder of a core's result with these files."""

TESTS = "test"
"""The folder of the test suite in it."""

_SUITES = (TESTS, "tests")
"""The usual names of a test suite."""


def keep_project(tree: Path, folder: Path) -> list[Path]:
    """Hard-link these files of a source tree into a folder; return their paths in the tree."""
    files = [path for path in (*project_licenses(tree), tree / PYPROJECT) if path.is_file()]
    for path in files:
        kept = folder / path.relative_to(tree)
        kept.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(str(path), str(kept))
    suite = next((tree / name for name in _SUITES if (tree / name).is_dir()), None)
    if suite is None:
        return files
    shutil.copytree(suite, folder / TESTS, symlinks=True, copy_function=link_or_copy)
    return [*files, suite]
