"""`-v` shows what torchyard does, in a log that a bug report can have."""

import os
import sys
from pathlib import Path

import pytest
from tests.support.helpers import WORKS, make_project

from torchyard.host.process import capture

CALL = (sys.executable, "-m", "torchyard")


def shown(folder: Path, *words: str, **env: str) -> tuple[str, str]:
    """Run torchyard, and return its standard error, and the log that it names in there."""
    home = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **env}
    shell = ("sh", "-c", '"$@" 2>&1 >/dev/null || true', "sh")
    err = capture([*shell, *CALL, *words], cwd=folder, env=home)
    (log,) = (folder / "cache/torchyard/log").iterdir()
    assert err.startswith(f"log      {log}\n")
    assert log.stat().st_mode & 0o777 == 0o600
    return err, log.read_text(encoding="utf-8")


def test_files_programs_and_decisions_are_shown(tmp_path: Path) -> None:
    file = make_project(tmp_path, WORKS)
    err, log = shown(tmp_path, "build", "-v", "core:*", "-f", str(file))
    for text in (err, log):
        assert f"read     {file}\n" in text
        assert "run      /usr/bin/gcc --version" in text
        assert "decide   sandbox of core:" in text
    assert "sandbox bwrap: " in log
    assert ".torchyard/store has no result" in log, "processes of jobs add lines"
    assert "built    core:" in log, "what was printed is there, too"


@pytest.mark.parametrize("words", [("-v", "plan", "nothing"), ("plan", "nothing", "-v")])
def test_an_error_is_in_the_log(tmp_path: Path, words: tuple[str, ...]) -> None:
    make_project(tmp_path, WORKS)
    _, log = shown(tmp_path, *words)
    assert "error: `nothing` matches no cell or job" in log


def test_secrets_are_not(tmp_path: Path) -> None:
    index = "https://me:hunter2@127.0.0.1:9/simple"
    err, log = shown(tmp_path, "-v", "channel", "check", index, UV_INDEX_URL=index)
    assert "hunter2" not in err + log


def test_the_version_has_what_a_maintainer_asks_for() -> None:
    short = capture([*CALL, "--version"], cwd=Path.cwd())
    assert short.startswith("torchyard ")
    assert len(short.splitlines()) == 1
    long = capture([*CALL, "--version", "-v"], cwd=Path.cwd())
    assert long == capture([*CALL, "-v", "--version"], cwd=Path.cwd())
    for word in ("Python 3", "msgspec", "git: ", "gcc: ", "sandbox bwrap: "):
        assert word in long
