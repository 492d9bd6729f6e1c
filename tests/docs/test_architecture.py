"""The pages about the architecture name modules that exist, and every room is on them."""

import re
from pathlib import Path

import pytest
from tests.support.helpers import ROOT

PAGES = [ROOT / "docs/architecture.md", *sorted((ROOT / "docs/architecture").glob("*.md"))]
PLACES = (ROOT, ROOT / "src/torchyard", ROOT / "farm/src/torchyard_farm")
NAMED = re.compile(r"`((?:[\w.-]+/)+(?:[\w-]+\.(?:py|toml))?)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_files_exist(page: Path) -> None:
    named = NAMED.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if not any((place / name).exists() for place in PLACES)] == []


def test_every_room_is_in_the_picture() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in (ROOT / "src/torchyard").glob("*/__init__.py")}
    picture = re.search(r"```text\n(features .*?)```", text, re.DOTALL)
    assert picture
    shown = re.findall(r"^([a-z| ]+?)  ", picture[1], re.MULTILINE)
    assert rooms <= {room for line in shown for room in line.replace("|", " ").split()}


def test_the_page_fits_in_a_head() -> None:
    assert len((ROOT / "docs/architecture.md").read_text(encoding="utf-8").split()) < 1200


def test_the_threat_model_names_tests_that_exist() -> None:
    text = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+\.py)`", text))
    places = (ROOT / "tests", ROOT / "farm/tests")
    there = {path.name for place in places for path in place.rglob("test_*.py")}
    assert named
    assert named - there == set()
