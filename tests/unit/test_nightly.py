"""The nightly checks: each file with tests is in one shard, and what has passed is not repeated."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from scripts import nightly
from scripts.nightly import Shard, main, shards


def test_each_file_is_in_one_shard() -> None:
    files = Counter(file for shard in shards()[0] for file in shard.files)
    assert set(files.values()) == {1}
    assert sorted(files) == nightly.test_files()


def test_no_shard_is_empty() -> None:
    assert all(shard.section or shard.files for shard in shards()[0])


def test_what_has_passed_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    works = tmp_path / "works"

    def command(shard: Shard, _journal: Path) -> tuple[list[str], dict[str, str]]:
        code = f"import pathlib, sys; print('ran', {shard.name!r})"
        if shard.name == "docs":
            code += f"; sys.exit(not pathlib.Path({str(works)!r}).exists())"
        return [sys.executable, "-c", code], {}

    monkeypatch.setattr(nightly, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(nightly, "command", command)
    monkeypatch.setattr(sys, "argv", ["nightly", "fuzz", "docs"])
    assert main() == 1
    first = capfd.readouterr().out
    assert "| docs | failed |" in first
    assert "| fuzz | passed |" in first
    works.touch()
    assert main() == 0
    second = capfd.readouterr().out
    assert "ran docs" in second
    assert "ran fuzz" not in second
    assert "| fuzz | passed |" in second
