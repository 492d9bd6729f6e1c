"""Wheels of extensions: what each must be, and the environment that `build here` builds one for."""

import json
import re
import subprocess
from pathlib import Path
from zipfile import ZipFile

from tests.support.helpers import Command

from torchyard.toolchain.interpreters import interpreter_for


def assert_sound(torchyard: Command, wheel: Path) -> None:
    """Assert that `check` finds no errors, and that nothing of torch is in the wheel."""
    shown = json.loads(torchyard("check", wheel, "--json").out)
    findings = shown["packages"][0]["findings"]
    assert [finding for finding in findings if finding["severity"] == "error"] == []
    with ZipFile(wheel) as archive:
        assert not re.search(r"lib(torch|c10)", "\n".join(archive.namelist()))


def make_environment(folder: Path) -> None:
    """Make an environment for Python 3.11, with a torch that can't be imported."""
    subprocess.run(
        [interpreter_for("cp311").path, "-m", "venv", "--without-pip", folder], check=True
    )
    packages = folder / "lib/python3.11/site-packages"
    (packages / "torch").mkdir()
    (packages / "torch/version.py").write_text("__version__ = '2.13.0+cpu'\n", encoding="utf-8")
    about = packages / "torch-2.13.0+cpu.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text("Name: torch\nVersion: 2.13.0+cpu\n", encoding="utf-8")


def build_here(torchyard: Command, file: Path, env: Path, *options: object) -> Path:
    """Return the wheel for the active environment `env`, which must be in the store."""
    here = torchyard("build", "here", "-f", file, *options)
    assert here.code == 0, here.err
    assert "cpu-torch2.13/cp311/wheel  cached" in here.out
    path, install = here.out.splitlines()[-2:]
    assert install.endswith(f"pip install --python {env}/bin/python3 {path}")
    return Path(path)
