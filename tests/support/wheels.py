"""Real wheels of torch, from the index that pip is configured for."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.helpers import shared_folder

from torchyard.host.locks import locked

CPU = "torch==2.13.0+cpu"
NEWEST = "torch"


def shared_wheel(factory: pytest.TempPathFactory, requirement: str, python: str) -> Path:
    """Download a wheel once for all processes of a test run, or skip the test."""
    place = shared_folder(factory)
    folder = place / f"{requirement}-{python}"
    with locked(place / f"{folder.name}.lock", wait=True):
        if not list(folder.glob("*.whl")):
            pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
            which = ("--only-binary=:all:", "--python-version", python)
            argv = [*pip, *which, "--dest", str(folder), requirement]
            done = subprocess.run(argv, check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"pip can't get {requirement} for Python {python}: {done.stderr}")
    (wheel,) = folder.glob("*.whl")
    return wheel
