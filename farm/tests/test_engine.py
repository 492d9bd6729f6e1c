"""The engine `buildbot`: what it refuses, and how a plan is followed again."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm, wait_until
from farm.tests.web_clients import Visitor
from tests.support.helpers import CORE, WORKS, call_main, make_project
from torchyard.errors import BuildError, UsageError

pytestmark = pytest.mark.integration

INTERRUPTED = 130


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[TrialFarm]:
    """A farm for a project whose core waits for one file, and fails unless another exists."""
    gate = f"while ! test -e {tmp_path}/open; do sleep 0.1; done; test -e {tmp_path}/mended"
    text = WORKS.replace("mkdir -p {out}/lib", f"{gate}; mkdir -p {{out}}/lib")
    file = make_project(tmp_path / "project", text)
    with TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1", "w2")) as farm:
        farm.start_master()
        farm.start_workers()
        yield farm


@contextmanager
def following(*words: object, until: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command until it prints a text."""
    argv = [sys.executable, "-m", "torchyard", *map(str, words)]
    with subprocess.Popen(argv, stdout=-1, stderr=-1, text=True) as process:
        try:
            assert process.stderr is not None
            assert any(line.startswith(until) for line in process.stderr)
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_failures_are_those_of_the_jobs_and_a_plan_is_followed_again(
    farm: TrialFarm, tmp_path: Path
) -> None:
    words = ("build", "--engine", "buildbot", "--farm", farm.master, "-f", farm.file)
    with following(*words, until=f"started  {CORE} on w") as build_there:
        build_there.send_signal(signal.SIGINT)
        out, told = build_there.communicate(timeout=600)
    assert build_there.returncode == INTERRUPTED, told
    assert out == ""
    assert "stopped with 9 jobs left" in told
    (plan,) = (path.stem for path in (farm.master / "plans").glob("*.json"))
    assert f"torchyard farm follow {farm.master} {plan}" in told
    assert f"torchyard farm cancel {farm.master} {plan}" in told

    with following("farm", "follow", farm.master, plan, until=f"started  {CORE} on w") as again:
        farm.kill("master")
        farm.start_master()
        wait_until(lambda: len(farm.builds()) > 1, 120, farm.log)
        (tmp_path / "open").touch()
        _, told = again.communicate(timeout=300)
    assert "note     the master does not answer" in told
    assert "started" not in told, "it went on where it was"
    assert again.returncode == BuildError.exit_code, told
    assert f"error: {CORE}: `compile` failed with exit code 1" in told
    (page,) = (line for line in told.splitlines() if line.startswith("its log, on w"))
    assert f"http://127.0.0.1:{farm.web}/#/builders/" in page
    assert "error: 1 job failed, 8 were not begun" in told

    state = " ".join(farm.run("status").split())
    assert "0 of 9 jobs done, 1 failed: it waits for Rebuild or cancel" in state
    assert "p-failed" in farm.text("plugins/plans/")
    for name in farm.names:
        farm.kill(name)
    (tmp_path / "mended").touch()
    with Visitor(farm) as admin:
        admin.log_in("admin", (farm.master / "secrets/admin").read_text(encoding="utf-8").strip())
        assert admin.ask_for("rebuild", f"builds/{farm.builds()[-1]['buildid']}") == 200
    with following("farm", "follow", farm.master, plan, until=f"failed   {CORE}") as again:
        farm.start_workers()
        out, told = again.communicate(timeout=300)
    assert again.returncode == 0, told
    assert "done after" in told
    assert out.count("built") == 2


def test_an_engine_takes_only_what_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    file = make_project(tmp_path / "project")
    for words, said in (
        (("--engine", "buildbot"), "the engine `buildbot` needs a farm"),
        (("--engine", "buildbot", "--farm", tmp_path), "is not a farm: it has no farm.toml"),
        (("--engine", "buildbot", "--jobs", 2), "`--jobs` is for the local engine"),
        (("--farm", tmp_path), "`--farm` is for the buildbot engine"),
        (("--engine", "builtbot"), "did you mean `buildbot`?"),
    ):
        argv = ["build", "-f", str(file), *map(str, words)]
        refused = call_main(argv, monkeypatch, capfdbinary)
        assert refused.code in (UsageError.exit_code, 7), refused.err
        assert said in refused.err
