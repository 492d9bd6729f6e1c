"""The door to the machine says plainly why it stays shut."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from torchyard.config.tables import load_tables
from torchyard.errors import HostError
from torchyard.host import files
from torchyard.host.child import Child
from torchyard.host.demangle import demangled
from torchyard.host.files import write_text
from torchyard.host.locks import locked
from torchyard.host.machine import platform_name, python_name
from torchyard.host.process import capture
from torchyard.host.process_id import group_is_running, is_running, is_same_process, process_birth
from torchyard.host.process_tree import written_bytes


def test_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="`no-such-program` is not on PATH"):
        capture(["no-such-program"], cwd=tmp_path)


def test_a_program_that_fails(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="exit code 3: sorry"):
        capture(["sh", "-c", "echo sorry >&2; exit 3"], cwd=tmp_path)


def test_a_program_waits_until_it_may_start(tmp_path: Path) -> None:
    """And has the environment that it is given, no more and no less."""
    argv = [sys.executable, "-c", "import os, sys; print(dict(os.environ), repr(sys.stdin.read()))"]
    env = {"PYTHONPATH": "/nowhere", "LC_ALL": "C.UTF-8", "odd": "a=b\nc\udc80"}
    said: list[str] = []
    child = Child([*argv], cwd=tmp_path, env=env)
    child.start()
    assert child.watch(said.append).code == 0
    assert said == [f"{env} ''"]


def test_a_program_never_starts_if_who_starts_it_is_killed(tmp_path: Path) -> None:
    script = """\
import os, sys
from pathlib import Path
from torchyard.host.child import Child
print(Child(["touch", "started"], cwd=Path(), env={}).pid, flush=True)
os.kill(os.getpid(), 9)
"""
    killed = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, check=False
    )
    until = time.monotonic() + 60
    while is_running(int(killed.stdout)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_running(int(killed.stdout))
    assert not (tmp_path / "started").exists()


def test_a_process_that_its_parent_never_asks_for_has_ended() -> None:
    """As in containers, whose first process is often a program that does not know about others."""
    group = subprocess.Popen(["sh", "-c", "exit"], start_new_session=True)
    assert os.waitid(os.P_PID, group.pid, os.WEXITED | os.WNOWAIT) is not None
    os.kill(group.pid, 0)  # it is still there
    assert not is_running(group.pid)
    assert not group_is_running(group.pid)
    group.wait()
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as running:
        assert is_running(running.pid)
        assert group_is_running(running.pid)
        running.kill()


def test_a_user_without_a_name_has_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    files.complete_environment()
    assert not Path.home().exists()


def test_temporary_files_are_in_the_volume_if_nothing_else_can_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TMPDIR", raising=False)
    files.complete_environment()
    assert "TMPDIR" not in os.environ
    read_only = str(tmp_path / "read-only")
    monkeypatch.setattr(files, "_TEMPORARY", (read_only,))
    files.complete_environment()
    own = str(tmp_path / ".torchyard/tmp")
    assert os.environ["TMPDIR"] == own
    assert Path(own).is_dir()
    monkeypatch.setenv("TMPDIR", read_only)  # as podman names one that the container lacks
    files.complete_environment()
    assert os.environ["TMPDIR"] == own
    (tmp_path / "usable").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "usable"))
    files.complete_environment()
    assert os.environ["TMPDIR"] == str(tmp_path / "usable")


def test_a_program_has_ended_even_if_what_it_left_never_stops_talking(tmp_path: Path) -> None:
    said: list[str] = []
    late = 0
    child = Child(["sh", "-c", "yes & echo done"], cwd=tmp_path, env={"PATH": os.defpath})

    def hear(line: str) -> None:
        nonlocal late
        late += not is_running(child.pid)
        assert late <= 1 << 16, "more than a pipe holds"
        if line != "y":
            said.append(line)

    child.start()
    assert child.watch(hear).code == 0
    assert said == ["done"]


def test_a_number_means_one_process() -> None:
    born = process_birth(os.getpid())
    assert is_same_process(os.getpid(), born)
    assert not is_same_process(os.getpid(), process_birth(1))
    gone = 2**22 + 1
    assert is_same_process(gone, born), "what it left may still be running"
    assert not is_same_process(gone, f"before the restart {born}")


def test_a_program_that_prints_no_text(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="not UTF-8"):
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
        time.sleep(0.5)
        path.unlink()
        with locked(path, wait=False) as third:
            assert third, "the name is free again"
            held = path.stat().st_ino
    thread.join()
    assert entered == [held], "the waiter has the lock that the name stands for"


def test_a_program_meets_signals_as_it_would_anywhere(tmp_path: Path) -> None:
    """Python ignores broken pipes; programs that it starts must not."""
    lines: list[str] = []
    script = "grep -E '^Sig(Ign|Blk)' /proc/self/status"
    child = Child(["sh", "-c", script], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    child.start()
    assert child.watch(lines.append).code == 0
    ours = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    assert [int(line.split()[1], 16) & ours for line in lines] == [0, 0]


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="there is no c++filt here")
def test_names_of_cxx_are_read_unless_they_would_swell() -> None:
    bomb = "_Z1fSt4pairIiiE" + "".join(f"S_IS{n}_S{n}_E" for n in "0123456789ABCDEFGHIJKLMNOP")
    names = ["_ZN3c101fEv", "main", bomb, f"_Z2000{'a' * 2000}v", "_ZN3c101gERKNS_1AES2_"]
    assert demangled(names) == {
        "_ZN3c101fEv": "c10::f()",
        "_ZN3c101gERKNS_1AES2_": "c10::g(c10::A const&, c10::A const&)",
    }
    assert demangled([]) == {}


def test_what_children_write_is_reported_while_they_run(tmp_path: Path) -> None:
    """So that a download by another program shows more than a clock."""
    reached = threading.Event()
    with (
        written_bytes(lambda size: reached.set() if size >= 5_000_000 else None),
        subprocess.Popen(
            ["sh", "-c", "head -c 5000000 /dev/zero > file; exec sleep 600"], cwd=tmp_path
        ) as child,
    ):
        assert reached.wait(60)
        child.kill()
