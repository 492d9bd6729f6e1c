"""The benchmarks compare like with like, and a large plan stays within its limits."""

import filecmp
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.bench import Result, jumps, measure
from tests.support.helpers import ROOT


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


def test_a_figure_that_jumps_is_named(tmp_path: Path) -> None:
    history = tmp_path / "nightly/figures.jsonl"

    def jumped(measured: float) -> list[str]:
        return jumps([Result("check", measured, "×", 100, "")], history)

    assert [jumped(figure) for figure in (10, 11, 10.5, 12.0, 13)] == [[], [], [], [], ["check"]]


def test_a_figure_beyond_the_possible_is_no_success() -> None:
    figures = {0.06: "WRONG", 1.1: "kept", 1.2: "BROKEN"}
    for measured, verdict in figures.items():
        assert Result("core once", measured, "×", 1.15, "", least=1).verdict == verdict


def test_a_benchmark_that_fails_leaves_the_results_of_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = Result("good", 1, "×", 2, "")

    def bad() -> list[Result]:
        raise ValueError

    monkeypatch.setattr("benchmarks.bench.BENCHMARKS", {"bad": bad, "good": lambda: [good]})
    assert list(measure(("bad", "good"))) == [None, good]
    assert "bad" in (shown := capsys.readouterr().out)
    assert "good" in shown
