"""The guard's loop, on real but idle processes and made-up memory."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchyard.engines.guard import Guard, SlotChange
from torchyard.host.jobserver import Jobserver
from torchyard.host.memory import Memory
from torchyard.host.process_tree import LeafProcess, find_leaf_processes

GB = 10**9


@pytest.fixture
def slots(tmp_path: Path) -> Iterator[Jobserver]:
    with Jobserver(tmp_path / "slots", 4) as pool:
        yield pool


@pytest.fixture
def job() -> Iterator[subprocess.Popen[bytes]]:
    """Run a job with three workers, which end when their input does."""
    script = "exec 3<&0; for n in 1 2 3; do cat <&3 & done; wait"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE) as process:
        eventually(lambda: len(find_leaf_processes([process.pid])) == 3)
        yield process


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def stopped(job: subprocess.Popen[bytes]) -> list[bool]:
    return [worker.stopped for worker in find_leaf_processes([job.pid])]


def test_too_little_memory_pauses_all_but_the_oldest_until_the_guard_stops(
    slots: Jobserver, job: subprocess.Popen[bytes]
) -> None:
    changes: list[SlotChange] = []
    guard = Guard(slots, lambda: [job.pid], changes.append, lambda: Memory(GB // 10, 8 * GB))
    guard.start()
    assert (slots.withheld, slots.free) == (3, 1)
    eventually(lambda: stopped(job) == [False, True, True])
    guard.stop()
    eventually(lambda: stopped(job) == [False] * 3)
    assert slots.free == 4
    assert changes[0].reason == "not enough memory is free for all slots"
    assert (changes[1].allowed, changes[1].paused) == (1, 2)


def test_the_paused_go_on_when_memory_is_there(
    slots: Jobserver, job: subprocess.Popen[bytes]
) -> None:
    available = [GB // 10]
    guard = Guard(slots, lambda: [job.pid], lambda _: None, lambda: Memory(available[0], 8 * GB))
    guard.start()
    eventually(lambda: stopped(job) == [False, True, True])
    available[0] = 8 * GB
    eventually(lambda: stopped(job) == [False] * 3)
    guard.stop()


def test_a_guard_that_fails_leaves_nothing_paused(
    slots: Jobserver, job: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)

    def fail(change: SlotChange) -> None:
        if change.paused:
            raise OSError

    guard = Guard(slots, lambda: [job.pid], fail, lambda: Memory(GB // 10, 8 * GB))
    guard.start()
    eventually(lambda: bool(failures))
    eventually(lambda: stopped(job) == [False] * 3)
    guard.stop()
    assert slots.free == 4


def test_plenty_of_memory_changes_nothing(slots: Jobserver, job: subprocess.Popen[bytes]) -> None:
    changes: list[SlotChange] = []
    guard = Guard(slots, lambda: [job.pid], changes.append, lambda: Memory(64 * GB, 64 * GB))
    guard.start()
    time.sleep(0.6)
    assert slots.free == 4
    guard.stop()
    guard.stop()
    assert changes == []


def test_workers_are_the_same_without_proc(tmp_path: Path, job: subprocess.Popen[bytes]) -> None:
    def names(workers: list[LeafProcess]) -> set[int]:
        return {worker.pid for worker in workers}

    assert names(find_leaf_processes([job.pid], tmp_path)) == names(find_leaf_processes([job.pid]))
    assert find_leaf_processes([]) == []


def test_helpers_of_a_job_are_never_paused(tmp_path: Path) -> None:
    """If who pauses them is killed, a job lets its steps go on, and knows of nothing else."""
    script = "exec 3<&0; cat <&3 & setsid cat <&3 & echo $!; wait"
    argv = ["sh", "-c", script]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as job:
        assert job.stdout is not None
        step = int(job.stdout.readline())
        eventually(lambda: os.getsid(step) == step)
        for proc in (Path("/proc"), tmp_path):
            assert [worker.pid for worker in find_leaf_processes([job.pid], proc)] == [step]
