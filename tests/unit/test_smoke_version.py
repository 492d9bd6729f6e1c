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


def test_what_an_extension_says_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As signatory's: its version has that of torch behind it, its module's has not."""
    (tmp_path / "of_signatory.py").write_text("__version__ = '1.2.6'\n", encoding="utf-8")
    (tmp_path / "torch.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    facts = {"NAME": "of_signatory", "VERSION": "1.2.6.1.9.0+pt213cpu", "KIND": "conda"}
    for name, value in {**facts, "MODULES": "of_signatory"}.items():
        monkeypatch.setenv(f"TORCHYARD_SMOKE_{name}", value)
    runpy.run_path(str(PROGRAM))
    assert "note: of_signatory.__version__ is 1.2.6, not 1.2.6.1" in capsys.readouterr().out
