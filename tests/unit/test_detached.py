"""What holds of detached jobs before any of them runs."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.helpers import CORE, WORKS, plan_of

from torchyard.host import secrets
from torchyard.host.detached import (
    LOCK,
    RunRecord,
    create_record,
    find_record,
    folder_lock,
    has_writer,
    launch,
)
from torchyard.host.process_id import process_birth
from torchyard.model.config import Sandbox
from torchyard.model.event import Noted, encode_event
from torchyard.model.identifier import parse
from torchyard.model.job_spec import JobSpec
from torchyard.model.recipe import Stage
from torchyard.plan.job_specs import make_job_spec
from torchyard.run.conditions import Conditions
from torchyard.run.detached import Assignment, JobExit, SupervisorStarted, end_named, follow_record
from torchyard.run.permissions import secrets_for
from torchyard.store.store import Store

PROGRAM = """\
import os, subprocess, sys, time
from torchyard.host.detached import detach
detach(int(sys.argv[1]))
print(sys.stdin.read(), os.getsid(0) != int(os.environ["SESSION"]), flush=True)
left = subprocess.Popen(["sleep", "60"])  # has the streams, but not the lock
print(f"{left.pid}\\nend", end="", flush=True)
time.sleep(1)
os._exit(0)
"""


@pytest.fixture
def spec() -> JobSpec:
    plan, job = plan_of(WORKS), parse(CORE)
    assert job.stage is not None
    return make_job_spec(plan, plan.find(job.stage, job.path))


def test_a_record_is_locked_while_its_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION", str(os.getsid(0)))
    path = tmp_path / "record"
    assert find_record(path) is None
    with folder_lock(tmp_path):
        lock = create_record(path)
        record, other = RunRecord(path), RunRecord(path)
    assert record.is_empty()
    launch([sys.executable, "-c", PROGRAM], path, lock, b"hello")
    until = time.monotonic() + 60
    while record.is_empty():
        assert record.is_running()
        assert other.is_running()
        assert time.monotonic() < until
    while record.is_running():
        assert time.monotonic() < until
    hello, left = record.lines()  # and no half of a line
    assert hello == b"hello True"
    os.kill(int(left), signal.SIGKILL)  # it was still there
    record.rewind()
    assert list(record.lines()) == [hello, left]
    for each in (record, other):
        each.close()


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o600), (0o002, 0o660), (0o077, 0o600)])
def test_only_those_who_may_write_can_hold_the_locks(tmp_path: Path, umask: int, mode: int) -> None:
    """A reader of the work directory could stop all jobs there, or let one seem to run."""
    before = os.umask(umask)
    try:
        with folder_lock(tmp_path):
            os.close(create_record(tmp_path / "record"))
            found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert found == {LOCK: mode, "record": mode}
    assert [path.name for path in tmp_path.iterdir()] == ["record"]


def test_who_locks_the_directory_itself_delays_nobody(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with folder_lock(tmp_path):
            pass
    finally:
        os.close(handle)


def test_a_directory_is_locked_by_one_at_a_time(tmp_path: Path) -> None:
    """Though each removes the lock file that the others wait for."""
    place, seen = tmp_path / "work", []

    def work() -> None:
        for _ in range(50):
            with folder_lock(place):
                (place / "inside").touch(exist_ok=False)
                (place / "inside").unlink()
                seen.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(seen) == 200
    assert not list(place.iterdir())


def test_only_the_record_itself_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "record"
    os.close(create_record(path))
    old = RunRecord(path)
    os.close(create_record(path))
    new = RunRecord(path)
    old.forget()
    assert path.exists()
    new.forget()
    new.forget()
    assert not path.exists()
    for each in (old, new):
        each.close()


def test_a_supervisor_may_end_just_when_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as program:
        born = process_birth(program.pid)
    lock = create_record(tmp_path / "core-0123.detached")
    os.write(lock, encode_event(SupervisorStarted(pid=program.pid, born=born, fingerprint="")))
    kill = os.kill

    def ends(pid: int, number: int) -> None:
        os.close(lock)
        kill(pid, number)

    monkeypatch.setattr(os, "kill", ends)
    end_named(tmp_path, "core-0123")
    assert not has_writer(tmp_path / "core-0123.detached")


def test_what_a_supervisor_is_told_is_whole_or_nothing(spec: JobSpec) -> None:
    conditions = Conditions(work=Path("/work"), file="/f.toml", sandbox=Sandbox(kind="view"))
    whole = Assignment(spec=spec, store="/store", conditions=conditions, secrets={"A": "b"})
    data = whole.encode()
    assert Assignment.decode(data) == whole
    assert not any(Assignment.decode(data[:length]) for length in range(0, len(data), 7))


def test_a_record_is_told_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "record"
    note, over = Noted(text="so"), JobExit(code=9)
    lines = [
        encode_event(SupervisorStarted(pid=1, born="", fingerprint="")),
        b"Traceback\n",
        encode_event(note),
    ]
    path.write_bytes(b"".join([*lines, encode_event(over), encode_event(note)]))
    events: list[object] = []
    strays: list[bytes] = []
    record = RunRecord(path)
    assert follow_record(record, events.append, strays.append) == over
    assert (events, strays) == ([note], [b"Traceback\n"])
    record.close()
    path.write_bytes(b"".join([*lines, encode_event(over)[:-1]]))
    record = RunRecord(path)
    assert follow_record(record, events.append, strays.append) is None, "it was cut off"
    record.close()


def test_secrets_are_entrusted_to_publishing_and_to_stores_that_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_taken", {"AWS_SESSION_TOKEN": "hunter2"})
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    folder, bucket = Store.at(str(tmp_path)), Store.at("s3://some-bucket/store", make=False)
    assert secrets_for(Stage.PUBLISH, folder) == {"AWS_SESSION_TOKEN": "hunter2"}
    assert not secrets_for(Stage.CORE, folder)
    assert secrets_for(Stage.CORE, bucket) == {"AWS_SESSION_TOKEN": "hunter2"}
