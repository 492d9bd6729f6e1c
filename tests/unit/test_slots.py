"""The pool of slots, without any build."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from torchyard.errors import HostError
from torchyard.host.jobserver import Jobserver, makeflags


@pytest.fixture
def slots(tmp_path: Path) -> Iterator[Jobserver]:
    with Jobserver(tmp_path / "slots", 4) as pool:
        yield pool


@pytest.fixture
def client(slots: Jobserver) -> Iterator[int]:
    """Open the fifo as ninja does."""
    fd = os.open(slots.path, os.O_RDWR | os.O_NONBLOCK)
    yield fd
    os.close(fd)


def test_what_clients_are_told(slots: Jobserver) -> None:
    assert makeflags(slots.path, old_make=False) == f"-j --jobserver-auth=fifo:{slots.path}"
    assert makeflags(slots.path, old_make=True) == f"-j1 -- --jobserver-auth=fifo:{slots.path}"


def test_no_more_can_be_taken_than_there_is(slots: Jobserver) -> None:
    assert [slots.take() for _ in range(5)] == [True] * 4 + [False]
    slots.give()
    assert slots.free == 1
    assert slots.take()


def test_who_waits_gets_what_another_gives(slots: Jobserver, client: int) -> None:
    assert os.read(client, 9) == b"++++"
    assert not slots.take(timeout=0.05)
    threading.Timer(0.1, os.write, (client, b"+")).start()
    assert slots.take(timeout=600)


def test_withholding_follows_what_is_wanted(slots: Jobserver, client: int) -> None:
    slots.withhold(3)
    assert (slots.withheld, slots.free) == (3, 1)
    slots.withhold(1)
    assert (slots.withheld, slots.free) == (1, 3)
    os.read(client, 2)
    slots.withhold(4)
    assert (slots.withheld, slots.free) == (2, 0)
    slots.withhold(0)
    assert (slots.withheld, slots.free) == (0, 2)


def test_carved_slots_return_when_the_pool_closes(tmp_path: Path, slots: Jobserver) -> None:
    assert slots.carve(tmp_path / "carved", 5) is None
    assert slots.free == 4
    carved = slots.carve(tmp_path / "carved", 3)
    assert carved
    assert (slots.free, carved.free) == (1, 3)
    assert carved.take()
    carved.close()
    carved.close()
    assert slots.free == 4
    assert not carved.path.exists()


def test_lost_slots_come_back_at_once_when_no_job_runs(slots: Jobserver, client: int) -> None:
    os.read(client, 3)
    assert slots.recover(0) == 3
    assert slots.free == 4
    assert slots.recover(0) == 0


def test_lost_slots_come_back_after_a_while_when_jobs_run(slots: Jobserver, client: int) -> None:
    assert slots.take()
    os.read(client, 3)
    assert [slots.recover(3) for _ in range(20)] == [0] * 20
    assert sum(slots.recover(1) for _ in range(20)) == 2
    assert slots.free == 2


def test_slots_that_a_client_adds_are_removed(slots: Jobserver, client: int) -> None:
    assert slots.take()
    os.write(client, b"+" * 1000)
    slots.recover(1)
    assert slots.free == 3
    with suppress(BlockingIOError):
        while True:
            os.write(client, b"+" * 4096)
    slots.give()
    for _ in range(30):
        slots.recover(0)
    assert slots.free == 4


def test_a_short_absence_is_no_loss(slots: Jobserver, client: int) -> None:
    assert slots.take()
    for _ in range(5):
        os.read(client, 2)
        assert sum(slots.recover(0) for _ in range(8)) == 0
        os.write(client, b"++")
        assert slots.recover(0) == 0


def test_a_slot_that_turns_up_again_is_removed(slots: Jobserver, client: int) -> None:
    os.read(client, 2)
    assert slots.recover(0) == 2
    os.write(client, b"++")
    assert slots.free == 6
    slots.recover(0)
    assert slots.free == 4


def test_the_fifo_is_ours_and_goes_with_us(tmp_path: Path) -> None:
    with Jobserver(tmp_path / "slots", 1) as slots:
        assert slots.path.is_fifo()
        assert slots.path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(HostError, match="can't be made"):
            Jobserver(slots.path, 1)
    assert not slots.path.exists()


def test_a_path_that_makeflags_can_not_hold(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="white space"):
        Jobserver(tmp_path / "my slots", 1)


def test_waiting_costs_no_time_when_there_is_a_slot(slots: Jobserver) -> None:
    begin = time.monotonic()
    assert slots.take(timeout=600)
    assert time.monotonic() - begin < 600
