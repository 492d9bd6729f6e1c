"""The benchmarks compare like with like, and a large plan stays within its limits."""

import filecmp
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers import ROOT


@pytest.mark.slow
def test_100_000_jobs_are_planned_within_3_seconds_and_300_mb() -> None:
    """Time and memory are the subject here; the benchmark fails if a limit is exceeded."""
    subprocess.run([sys.executable, ROOT / "benchmarks/bench.py", "large-plan"], check=True)


@pytest.mark.slow
def test_20_000_units_are_shown_within_three_times_of_parsing_their_files() -> None:
    subprocess.run([sys.executable, ROOT / "benchmarks/bench.py", "build-insight"], check=True)


@pytest.mark.slow
def test_the_bare_programs_write_what_a_channel_has(tmp_path: Path) -> None:
    pages = ROOT / "benchmarks/pages.py"

    def run(*args: object) -> None:
        subprocess.run([sys.executable, pages, *map(str, args)], check=True)

    channel, every, one = tmp_path / "channel", tmp_path / "all", tmp_path / "one"
    run("make", channel, 2000)
    run("bare-all", channel, every)
    run("bare-one", channel, 1, one)
    written = [path.relative_to(every) for path in every.rglob("*") if path.is_file()]
    assert len(written) == 9 * 2 * (50 + 1)
    assert filecmp.cmpfiles(every, channel, map(str, written), shallow=False)[1:] == ([], [])
    for path in written:
        (channel / path).unlink()
    run("all", channel)
    assert filecmp.cmpfiles(every, channel, map(str, written), shallow=False)[1:] == ([], [])
    run("one", channel, 1)
    new = [str(path.relative_to(one)) for path in one.rglob("*") if path.is_file()]
    assert len(new) == 4
    assert filecmp.cmpfiles(one, channel, new, shallow=False)[1:] == ([], [])
