"""Schemas describe what is written and what is printed."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from tests.support.helpers import EXAMPLE, SMALL, Command
from tests.support.schemas import validate

OWN_ROW = '[tables.pythons.cp316]\nversion = "3.16"\n'


@pytest.mark.parametrize(
    "text",
    [SMALL, EXAMPLE.read_text(encoding="utf-8"), SMALL.replace("cp312", "cp316") + OWN_ROW],
    ids=["small", "example", "own-rows"],
)
def test_configurations(text: str) -> None:
    validate(tomllib.loads(text), "torchyard")


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("python = [", "pyton = ["),
        ('"macos-arm64"]', '"macos-arm"]'),
        ('reason = "nobody wants it"\n', ""),
        ('stage = "core"', 'stage = "cores"'),
        ('name = "torch"', "name = 3"),
    ],
)
def test_an_editor_sees_mistakes(written: str, instead: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate(tomllib.loads(SMALL.replace(written, instead)), "torchyard")


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        ("plan", ["plan", "--subset", "nightly"]),
        ("plan-diff", ["plan", "diff", "{small}", "{example}"]),
        ("explain", ["explain", "torch-2.14.0/linux-x86_64/cu130-mkl/cp312/wheel"]),
        ("explain", ["explain", "torch-2.14.0/linux-s390x/cpu-openblas/cp315/wheel"]),
        ("explain", ["explain", "source:torch-2.14.0", "--against", "{small}"]),
        ("config-show", ["config", "show"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_reports(torchyard: Command, tmp_path: Path, schema: str, args: list[str]) -> None:
    small = tmp_path / "small.toml"
    small.write_text(SMALL, encoding="utf-8")
    spelt = [arg.format(small=small, example=EXAMPLE) for arg in args]
    result = torchyard(*spelt, "-f", EXAMPLE, "--json")
    assert result.code == 0
    validate(json.loads(result.out), schema)
