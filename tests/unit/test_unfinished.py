"""Jobs that a time limit stops, and that go on with a follow-up on another machine."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.helpers import CORE, WORKS, Command, make_project

from torchyard.store.gc import remove_garbage
from torchyard.store.keys import UNFINISHED
from torchyard.store.store import Store

LATER = "while ! test -e {flag}; do sleep 0.05; done; cp -p {{build}}/first {{out}}"
"""The end of a step that takes as long as the test wants."""


def slow_core(folder: Path) -> str:
    """Return a project whose core has a quick step, and one that waits; each is counted."""
    first = (
        f"echo done > {{build}}/first; touch -d 2001-02-03 {{build}}/first; echo >> {folder}/one"
    )
    later = f"echo >> {folder}/two; {LATER.format(flag=folder / 'go')}"
    steps = WORKS.replace('name = "list"\nrun = ["sh", "-c", "ls {out}/lib > {out}/listing"]', "")
    assert steps != WORKS
    return steps.replace(
        "[[steps.bindings]]",
        f'run = "{first}"\n\n[[steps.core]]\nrun = "{later}"\n\n[[steps.bindings]]',
    )


def count(folder: Path, name: str) -> int:
    path = folder / name
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


@pytest.fixture
def stopped(tmp_path: Path, torchyard: Command) -> Path:
    """Build until the core is in its last step, which the time limit stops; return the file."""
    file = make_project(tmp_path / "machine", slow_core(tmp_path))
    for limit in (1, 2, 4, 8, 16, 32, 64):  # a busy machine may need longer to get there
        done = torchyard("build", "-f", file, "--time-limit", f"{limit} s", CORE)
        assert done.code == 0, done.err
        if count(tmp_path, "two"):
            assert "kept 2 finished steps for the next run" in done.err
            return file
    pytest.fail("the core never got to its last step")


def new_machine(file: Path) -> None:
    """Remove everything but the store, as a job of a provider begins."""
    shutil.rmtree(file.parent / ".torchyard/work")


def test_a_follow_up_repeats_no_finished_step(
    stopped: Path, tmp_path: Path, torchyard: Command
) -> None:
    ones, twos = count(tmp_path, "one"), count(tmp_path, "two")
    carried = tmp_path / "carried"
    assert torchyard("store", "push", carried, "-f", stopped).code == 0
    shutil.rmtree(stopped.parent / ".torchyard")
    pulled = torchyard("store", "pull", carried, "-f", stopped)
    assert "1 unfinished job copied" in pulled.out
    (tmp_path / "go").touch()
    done = torchyard("build", "-f", stopped, CORE)
    assert done.code == 0, done.err
    assert "goes on after 2 steps of an earlier run" in done.err
    assert (count(tmp_path, "one"), count(tmp_path, "two")) == (ones, twos + 1)
    log = torchyard("store", "show", CORE, "--log", "-f", stopped).out
    last_run = log.rpartition(f"== {CORE}")[2]
    assert last_run.count("was done by an earlier run") == 2
    assert torchyard("store", "get", CORE, "-f", stopped, "-o", tmp_path / "out").code == 0
    made = tmp_path / "out/first"
    assert made.read_text(encoding="utf-8") == "done\n"
    assert made.stat().st_mtime < 1e9  # so that ninja compiles nothing again
    again = torchyard("store", "push", tmp_path / "other", "-f", stopped)
    assert "unfinished" not in again.err


@pytest.mark.slow
def test_without_a_sandbox_work_is_not_moved(
    stopped: Path, tmp_path: Path, torchyard: Command
) -> None:
    ones = count(tmp_path, "one")
    (tmp_path / "go").touch()
    done = torchyard("build", "-f", stopped, "--work", tmp_path / "elsewhere", CORE)
    assert done.code == 0, done.err
    assert count(tmp_path, "one") == ones + 1


@pytest.mark.slow
def test_work_that_is_damaged_is_done_again(
    stopped: Path, tmp_path: Path, torchyard: Command
) -> None:
    ones = count(tmp_path, "one")
    new_machine(stopped)
    store = Store.at(str(stopped.parent / ".torchyard/store"))
    (work,) = store.all_unfinished()
    (file,) = (file for file in work.tree.files if file.path == "build/first")
    store.objects.delete([f"blobs/{file.digest[:2]}/{file.digest}"])
    (tmp_path / "go").touch()
    done = torchyard("build", "-f", stopped, CORE)
    assert done.code == 0, done.err
    assert count(tmp_path, "one") == ones + 1


def test_work_is_collected_if_nobody_goes_on(stopped: Path) -> None:
    store = Store.at(str(stopped.parent / ".torchyard/store"))
    (work,) = store.all_unfinished()
    remove_garbage(store, [work.fingerprint], timedelta(days=1))
    assert list(store.objects.list(UNFINISHED))
    remove_garbage(store, [work.fingerprint], timedelta(0))
    assert not list(store.objects.list(UNFINISHED))
