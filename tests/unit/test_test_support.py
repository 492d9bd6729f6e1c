"""The page on the modules that tests share."""

import re

from tests.support.helpers import ROOT

SUPPORT = ROOT / "tests/support"


def test_every_module_is_on_the_page() -> None:
    named = set(re.findall(r"`(\w+\.py)`", (SUPPORT / "README.md").read_text(encoding="utf-8")))
    assert named == {path.name for path in SUPPORT.glob("*.py")}


def test_every_fixture_is_on_the_page() -> None:
    text = (ROOT / "tests/conftest.py").read_text(encoding="utf-8")
    fixtures = set(re.findall(r"@pytest\.fixture.*\ndef ([a-z]\w+)\(", text))
    page = (SUPPORT / "README.md").read_text(encoding="utf-8")
    assert {name for name in fixtures if f"`{name}`" not in page} == set()
