"""Configurations that the pages show are whole, and say what the text around them says."""

import re
import subprocess
from pathlib import Path

import pytest

from torchyard.config.document import Document
from torchyard.config.load import config_of
from torchyard.config.lock import build_lock_text
from torchyard.model.lock import BuildLock
from torchyard.plan.build import make_plan

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```toml\n(\[project\]\n.*?)^```", re.DOTALL | re.MULTILINE)


def shown(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["README.md", "docs/guides/build-an-extension.md"])
def test_twelve_wheels_of_an_extension_take_twenty_lines(page: str, tmp_path: Path) -> None:
    text = shown(page)[0]
    assert len(text.splitlines()) <= 20
    plan = make_plan(config_of(str(tmp_path / "torchyard.toml"), Document("torchyard.toml", text)))
    assert len(list(plan.cells())) == 2 * 2 * 3


def test_the_files_of_a_lock_can_be_downloaded_for_a_machine_without_a_network(
    tmp_path: Path,
) -> None:
    wheels = ("torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl", "typing_extensions-4.16.0-py3.whl")
    lock = BuildLock(
        environments={"cell": wheels},
        files=dict.fromkeys(wheels, "5" * 64),
        sizes=dict.fromkeys(wheels, 1),
        images={"example.org/build-3-a": f"sha256:{'6' * 64}"},
    )
    (tmp_path / "torchyard.lock").write_text(build_lock_text(lock), encoding="utf-8")
    guide = (ROOT / "docs/guides/behind-a-firewall.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^sed .*$", guide, re.MULTILINE)
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True)
    assert (tmp_path / "wheels.txt").read_text(encoding="utf-8") == (
        f"torch==2.13.0+cpu --hash=sha256:{'5' * 64}\n"
        f"typing_extensions==4.16.0 --hash=sha256:{'5' * 64}\n"
    )
