"""The examples for administrators, run with the programs that they are for."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
UNITS = sorted((EXAMPLES / "systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=[unit.stem for unit in UNITS])
def test_units_are_right(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    program = Path(sys.executable).with_name("torchyard")
    text = unit.read_text(encoding="utf-8")
    copy = tmp_path / unit.name
    copy.write_text(text.replace("/usr/local/bin/torchyard", str(program)), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    (verb,) = re.findall(r"^ExecStart=.* farm (\w+) ", text, re.MULTILINE)
    argv = [sys.executable, "-m", "torchyard", "farm", verb, "--help"]
    told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    options = re.findall(r" (--[a-z-]+)", text)
    assert options
    assert all(option in told for option in options)
