"""The examples that can be built here, built."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers import ROOT

pytestmark = pytest.mark.integration


def test_the_small_example_is_built_and_rebuilt(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    shutil.copytree(
        ROOT / "examples/small", folder, ignore=shutil.ignore_patterns(".torchyard", "dist")
    )
    torchyard = [sys.executable, "-m", "torchyard"]
    subprocess.run([*torchyard, "build", "-o", "dist"], cwd=folder, check=True)
    wheels = sorted((folder / "dist").iterdir())
    assert [wheel.name for wheel in wheels] == [
        "small-1.0-cp311-none-linux-x86_64.whl",
        "small-1.0-cp312-none-linux-x86_64.whl",
    ]
    subprocess.run([*torchyard, "rebuild", str(wheels[0])], cwd=folder, check=True)
