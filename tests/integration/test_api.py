"""The examples of the page about the Python API, run in order in a copy of examples/small."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.helpers import ROOT

pytestmark = pytest.mark.integration

PAGE = ROOT / "docs/guides/script-with-python.md"


def test_what_the_page_says_works(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    shutil.copytree(
        ROOT / "examples/small", folder, ignore=shutil.ignore_patterns(".torchyard", "dist")
    )
    code = "\n".join(
        re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    )
    assert code.count("_packages(") >= 4
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(script)], cwd=folder, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    assert "small-1.0 has" in lines[0]
    assert "linux-x86_64/cpu-generic/cp311/wheel" in lines
    wheels = [f"small-1.0-cp{number}-none-linux_x86_64.whl" for number in (311, 312)]
    assert [path.name for path in sorted((folder / "dist").glob("[!.]*"))] == wheels
    assert f"1 {wheels}" in lines
    page = (folder / "channel/simple/small/index.html").read_text(encoding="utf-8")
    assert all(f">{wheel}</a>" in page for wheel in wheels)
    assert any(line.startswith("unknown key") for line in lines), lines[-3:]
