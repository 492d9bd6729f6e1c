"""The examples that can be built here, built."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers import ROOT

pytestmark = pytest.mark.integration


def test_the_small_example_is_built_published_and_rebuilt(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    shutil.copytree(
        ROOT / "examples/small", folder, ignore=shutil.ignore_patterns(".torchyard", "dist")
    )
    file = folder / "torchyard.toml"
    channel = '\n[channel.nightly]\nurl = "channel"\n'
    file.write_text(file.read_text(encoding="utf-8") + channel, encoding="utf-8")
    torchyard = [sys.executable, "-m", "torchyard"]
    subprocess.run([*torchyard, "build", "-o", "dist"], cwd=folder, check=True)
    wheels = sorted((folder / "dist").iterdir())
    assert [wheel.name for wheel in wheels] == [
        "small-1.0-cp311-none-linux_x86_64.whl",
        "small-1.0-cp312-none-linux_x86_64.whl",
    ]
    subprocess.run([*torchyard, "rebuild", str(wheels[0])], cwd=folder, check=True)
    page = (folder / "channel/cpu/small/index.html").read_text(encoding="utf-8")
    assert all(f">{wheel.name}</a>" in page for wheel in wheels)
