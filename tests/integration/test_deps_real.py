"""Dependencies of a real tree: Debian's source package of PyTorch 2.6.0.

It has no history, no submodules and nothing of upstream's CI, so versions that are only there
(nccl, protobuf, sleef, six, triton) can't be read from it.
"""

import os
from pathlib import Path

import pytest

from torchyard.features.deps.use_case import compare_dependencies
from torchyard.insight.version_readings import ReadFrom

GIVEN = "TORCHYARD_TEST_SOURCE"
"""The variable that names the directory of the unpacked source package."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(GIVEN not in os.environ, reason=f"{GIVEN} names no tree of PyTorch 2.6.0"),
]

ROWS = {
    "cuda": (["12.1.1"], "docker.Makefile:12"),
    "magma": (["2.5.4"], "docs/source/notes/windows.rst:29"),
    "libuv": (["1.39"], "CMakeLists.txt:436"),
    "mkl": (["2020.0", "2020.2.254.7"], "WORKSPACE:199"),
    "filelock": (["3.13.1"], "setup.py:1099"),
    "fsspec": (["any"], "setup.py:1105"),
    "jinja2": (["any"], "setup.py:1104"),
    "networkx": (["any"], "setup.py:1103"),
    "numpy": (["1.26.4", "2.1.0"], ".lintrunner.toml:144"),
    "pyyaml": (["6.0.1"], "pyproject.toml:7"),
    "requests": (["2.32.2"], "pyproject.toml:10"),
    "sympy": (["1.13.1", "1.13.0", "1.12"], "setup.py:1102"),
    "typing-extensions": ([">=4.10.0", "4.11.0"], "pyproject.toml:9"),
}


def test_the_rows_that_can_be_read_from_debians_tree() -> None:
    tree = Path(os.environ[GIVEN])
    document = compare_dependencies(str(tree), file="none.toml")
    rows = {row.name: row for row in document.dependencies}
    for name, (versions, where) in ROWS.items():
        assert rows[name].versions(ReadFrom.TREE) == versions, name
        assert where in [one.where for one in rows[name].readings], name
    for row in document.dependencies:
        for one in row.readings:
            if one.read_from is ReadFrom.TREE:
                line = (tree / one.file).read_text().splitlines()[one.line - 1]
                assert one.version.removeprefix("==").split(",")[0].lstrip("<>=!~") in line
