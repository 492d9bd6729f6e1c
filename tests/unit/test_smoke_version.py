"""The smoke test that compares the version of a module with that of its package."""

import runpy
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "src/torchyard/data/smoke/any/version.py"


@pytest.mark.parametrize(
    ("own", "label", "is_same"),
    [
        ("1.0", "1.0", True),
        ("1.0+cpu", "1.0+cpu", True),
        ("1.0+cu130", "1.0", True),
        ("1.0", "1.0+pt213cpu", True),
        ("1.0+cpu", "1.0+cu130", False),
        ("2.0", "1.0", False),
        ("2.0", "1.0+cpu", False),
    ],
)
def test_one_of_both_may_lack_the_label(
    own: str, label: str, is_same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"of_version_{abs(hash((own, label)))}"
    (tmp_path / f"{module}.py").write_text(f"__version__ = {own!r}\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    facts = {"NAME": module, "VERSION": label, "KIND": "conda", "MODULES": module}
    for name, value in facts.items():
        monkeypatch.setenv(f"TORCHYARD_SMOKE_{name}", value)
    if is_same:
        runpy.run_path(str(PROGRAM))
    else:
        with pytest.raises(AssertionError, match=rf"__version__ is {own[:3]}"):
            runpy.run_path(str(PROGRAM))
