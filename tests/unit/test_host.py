"""The door to the machine says plainly why it stays shut."""

import threading
import time
from pathlib import Path

import pytest

from torchyard.config.tables import load_tables
from torchyard.errors import HostError
from torchyard.host.files import write_text
from torchyard.host.machine import platform_name, python_name
from torchyard.host.process import capture
from torchyard.host.work import locked


def test_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="`no-such-program` is not on PATH"):
        capture(["no-such-program"], cwd=tmp_path)


def test_a_program_that_fails(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="exit code 3: sorry"):
        capture(["sh", "-c", "echo sorry >&2; exit 3"], cwd=tmp_path)


def test_a_program_that_prints_no_text(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no UTF-8 text"):
        capture(["printf", r"\377"], cwd=tmp_path)


def test_writing_never_replaces_by_accident(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    write_text(path, "one")
    with pytest.raises(HostError, match="exists already"):
        write_text(path, "two")
    write_text(path, "two", replace=True)
    assert Path(path).read_text(encoding="utf-8") == "two"
    with pytest.raises(HostError, match="can't be written"):
        write_text(str(tmp_path / "none/file"), "x")


def test_this_machine_is_known() -> None:
    assert platform_name() in load_tables().platforms
    assert python_name() in load_tables().pythons


def test_a_lock_that_was_removed_meanwhile_locks_nobody_out(tmp_path: Path) -> None:
    """Whoever waited for a lock whose file is gone must not think that it has it."""
    path = tmp_path / "lock"
    began, entered = threading.Event(), []

    def wait() -> None:
        began.set()
        with locked(path, wait=True):
            entered.append(path.stat().st_ino)

    with locked(path, wait=False) as alone:
        assert alone
        with locked(path, wait=False) as second:
            assert not second
        thread = threading.Thread(target=wait)
        thread.start()
        began.wait()
        time.sleep(0.1)
        path.unlink()
        with locked(path, wait=False) as third:
            assert third, "the name is free again"
            held = path.stat().st_ino
    thread.join()
    assert entered == [held], "the waiter has the lock that the name stands for"
