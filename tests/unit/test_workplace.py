"""A job's directory: there whole or not at all, and nobody works in one that is gone."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path

import msgspec
import pytest

from torchyard.host.detached import RunRecord
from torchyard.host.locks import locked
from torchyard.host.process_id import is_running, process_birth
from torchyard.run.cleanup import tidy
from torchyard.run.workdir import JobState, remove_work

DIES = """\
import os, signal, sys
from pathlib import Path
from torchyard.run.workdir import remove_work

def dies(folder, moment):
    left = moment

    def come(event, _):
        nonlocal left
        if event in ("os.remove", "os.rename", "os.rmdir"):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(come)
    remove_work(folder)
    os._exit(0)

for number, line in enumerate(sys.stdin):
    pid = os.fork()
    if not pid:
        dies(Path(line.rstrip()), number)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""Removes directories, and is killed before the first operation, the second, the third …"""

FILES = ("inputs/core/lib.so", "inputs/core/more.so", "out/made.whl", "log")


def make_work(folder: Path, state: JobState) -> None:
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name, encoding="utf-8")
    (folder / "state.json").write_bytes(msgspec.json.encode(state))
    folder.with_name(f"{folder.name}.lock").touch()


def test_a_directory_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """Who finds half of one would take half of an input, or of a result, for all of it."""
    folder = tmp_path / "core-0123"
    argv = [sys.executable, "-c", DIES]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as dying:
        assert dying.stdin is not None
        assert dying.stdout is not None
        for moment in count():
            make_work(folder, JobState())
            whole = set(folder.rglob("*"))
            print(folder, file=dying.stdin, flush=True)
            code = int(dying.stdout.readline())
            assert set(folder.rglob("*")) in (whole, set()), f"killed at moment {moment}"
            if code == 0:
                break
            assert code == -signal.SIGKILL
        dying.stdin.close()
    assert moment > len(FILES)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_left_running_ends_before_its_directory_goes(tmp_path: Path) -> None:
    folder = tmp_path / "core-0123"
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as left:
        make_work(folder, JobState(group=left.pid, born=process_birth(left.pid)))
        reaper = threading.Thread(target=left.wait)  # an orphan has one, too
        reaper.start()
        try:
            remove_work(folder)
            assert not is_running(left.pid)
        finally:
            left.kill()
            reaper.join()
    assert not list(tmp_path.iterdir())


def make_old(work: Path) -> None:
    os.utime(work, (0, 0))


def test_what_vanishes_while_others_are_removed_is_no_concern(tmp_path: Path) -> None:
    """The job of the second ends while the first is removed."""
    first, second = tmp_path / "core-1", tmp_path / "core-2"
    argv = ["sh", "-c", 'trap "rm -r $0; exit" TERM; echo ready; sleep 600 & wait', str(second)]
    with subprocess.Popen(argv, start_new_session=True, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        make_work(first, JobState(group=left.pid, born=process_birth(left.pid)))
        make_work(second, JobState())
        reaper = threading.Thread(target=left.wait)
        reaper.start()
        for work in (first, second):
            make_old(work)
        assert tidy(tmp_path, (), 60.0) == [first]
        reaper.join()
    assert not second.exists()


def test_a_directory_stays_that_was_used_a_moment_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "core-1"
    make_work(work, JobState())
    make_old(work)

    def used(path: Path, *, wait: bool) -> AbstractContextManager[bool]:
        os.utime(work)
        return locked(path, wait=wait)

    monkeypatch.setattr("torchyard.run.cleanup.locked", used)
    assert not tidy(tmp_path, (), 60.0)
    assert work.exists()


def test_a_record_may_be_forgotten_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "core-1.detached"
    path.touch()
    make_old(path)

    def forgotten(record: RunRecord) -> bool:
        record.path.unlink()
        return False

    monkeypatch.setattr(RunRecord, "is_running", forgotten)
    assert tidy(tmp_path, (), 60.0) == [path]
