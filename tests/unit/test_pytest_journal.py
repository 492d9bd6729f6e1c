"""Runs of the tests with other Pythons go on where they were interrupted."""

import subprocess
import sys
from pathlib import Path

import pytest
from scripts.pytest_journal import ended, prepare
from tests.support.helpers import ROOT

ONE = """
import pytest

def test_passes():
    pass

def test_is_skipped():
    pytest.skip("for a reason")
"""
OTHER = """
import os
from pathlib import Path

def test_passes():
    os.environ.clear()

def test_passes_later():
    assert Path("later").exists()
"""


def run(folder: Path, journal: Path) -> int:
    words = (
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "scripts.pytest_journal",
        "test_one.py",
        "test_other.py",
    )
    command = [sys.executable, "-m", "pytest", "--rootdir", str(folder), *words]
    env = {**prepare(journal), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=env, check=False).returncode


@pytest.mark.slow
def test_files_that_have_passed_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(ONE)
    (tmp_path / "test_other.py").write_text(OTHER)
    journal = tmp_path / "3.15/journal.jsonl"
    assert run(tmp_path, journal) == 1
    assert {test.name: test.outcome for test in ended(journal)} == {
        "test_one.py::test_passes": "passed",
        "test_one.py::test_is_skipped": "skipped",
        "test_other.py::test_passes": "passed",
        "test_other.py::test_passes_later": "failed",
    }
    (tmp_path / "test_one.py").write_text(ONE.replace("pass\n", "assert False\n", 1))
    (tmp_path / "later").touch()
    assert run(tmp_path, journal) == 0
    assert [test.outcome for test in ended(journal)].count("passed") == 3
    assert run(tmp_path, journal) == 5  # nothing is left
