"""Configurations that the pages show are whole, and say what the text around them says."""

import re
from pathlib import Path

import pytest

from torchyard.config.document import Document
from torchyard.config.load import config_of
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
