"""What docs/evidence/wheels.md says of wheels from PyPI is what `check` finds in them."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.support.helpers import ROOT, Command
from tests.support.wheels import shared_wheel

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PAGE = (ROOT / "docs/evidence/wheels.md").read_text(encoding="utf-8")
ROW = re.compile(r"(?m)^\| `(?P<file>\S+\.whl)` \| (?P<errors>.*?) ?\| (?P<warnings>.*?) ?\|$")
CLEAN = re.compile(r"(?m)^- `(?P<file>\S+\.whl)`$")
STORY = re.compile(r"(?m)^\| (?P<name>[a-z-]+) (?P<version>[\d.]+) \| `(?P<rule>[a-z-]+)` \|")
RULE = re.compile(r"`(?P<rule>[a-z-]+)`(?: (?P<count>\d+))?")
SMALL = (
    "fbgemm_gpu_cpu-1.5.0-cp312",
    "sentencepiece-0.2.3-cp312",
    "torchao-0.13.0-1-cp39",
    "torchaudio-2.11.0-cp312",
    "torchcodec-0.10.0-cp312",
    "xformers-0.0.35-py39",
)


def listed() -> dict[str, Counter[tuple[str, str]]]:
    """Return the findings that the page lists, by the names of wheels."""
    found: dict[str, Counter[tuple[str, str]]] = {
        m["file"]: Counter() for m in CLEAN.finditer(PAGE)
    }
    for row in ROW.finditer(PAGE):
        counts = found.setdefault(row["file"], Counter())
        for severity in ("error", "warning"):
            for one in RULE.finditer(row[f"{severity}s"]):
                counts[severity, one["rule"]] = int(one["count"] or 1)
    return found


def rows_of(name: str, version: str) -> list[Counter[tuple[str, str]]]:
    start = f"{name.replace('-', '_')}-{version}-"
    return [counts for file, counts in listed().items() if file.startswith(start)]


def test_the_page_agrees_with_itself() -> None:
    wheels = listed()
    projects = {file.partition("-")[0] for file in wheels}
    assert f"read {len(wheels)} wheels of {len(projects)} projects" in PAGE
    assert len(wheels) >= 60
    assert len(projects) >= 15
    stories = [match.groups() for match in STORY.finditer(PAGE)]
    assert len(stories) == PAGE.partition("Other programs")[0].count("\n| ") - 1
    for name, version, rule in stories:
        rows = rows_of(name, version)
        assert rows, (name, version)
        assert all(rule in {found for _, found in row} for row in rows), (name, version, rule)


@pytest.mark.parametrize("start", SMALL)
def test_check_finds_what_the_page_says(
    start: str, tmp_path_factory: pytest.TempPathFactory, torchyard: Command
) -> None:
    (file,) = (file for file in listed() if file.startswith(f"{start}-"))
    name, version, *_ = file.split("-")
    wheel: Path = shared_wheel(tmp_path_factory, f"{name}=={version}", "3.12")
    assert wheel.name == file
    [package] = json.loads(torchyard("check", wheel, "--json").out)["packages"]
    found = Counter((one["severity"], one["rule"]) for one in package["findings"])
    assert {key: n for key, n in found.items() if key[0] != "note"} == listed()[file]
