"""A machine's answers to its master, through any of its workers."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import ParamSpec, Protocol, TypeVar, cast

from buildbot_worker.pb import BotPb
from twisted.internet import defer

from farm.tests.stand_ins import stands_in
from torchyard_farm.scheduling.worker_status import decode_status
from torchyard_farm.worker.status_reporter import StatusReporter, measure_status

P = ParamSpec("P")
T = TypeVar("T")


class SupportsCallback(Protocol):
    """A Deferred of any result."""

    def callback(self, result: str) -> None: ...

    def errback(self, fail: BaseException) -> None: ...


class Threads:
    """Stand-in for threads: calls end when a test says so."""

    def __init__(self) -> None:
        self.begun: list[tuple[object, ...]] = []
        self.over: list[SupportsCallback] = []

    def __call__(self, f: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> defer.Deferred[T]:
        self.begun.append(args)
        over: defer.Deferred[T] = defer.Deferred()
        self.over.append(cast("SupportsCallback", over))
        return over


def bots_of(answers: StatusReporter) -> list[SimpleNamespace]:
    bots = [SimpleNamespace(remote_getWorkerInfo=lambda: {"version": "4"}) for _ in range(3)]
    for bot in bots:
        answers.attach(stands_in(BotPb, bot))
    return bots


def test_a_job_is_ended_once_at_a_time(tmp_path: Path) -> None:
    threads = Threads()
    bots = bots_of(StatusReporter(tmp_path, threads))
    for bot in bots:
        bot.remote_end("core-0123")
        bot.remote_end("core-4567")
        bot.remote_end("../core-0123")
    assert threads.begun == [(tmp_path, "core-0123"), (tmp_path, "core-4567")]
    threads.over[0].errback(OSError("it does not end"))
    bots[0].remote_end("core-0123")
    assert threads.begun[2:] == [(tmp_path, "core-0123")]


def test_one_look_answers_all_who_ask_meanwhile(tmp_path: Path) -> None:
    threads, heard = Threads(), list[object]()
    first, second, third = bots_of(StatusReporter(tmp_path, threads))
    first.remote_look().addCallback(heard.append)
    second.remote_look().addCallback(heard.append)
    third.remote_getWorkerInfo().addCallback(heard.append)
    assert threads.begun == [(tmp_path,)]
    threads.over[0].callback("so")
    assert heard == ["so", "so", {"version": "4", "look": "so"}]
    first.remote_look().addCallback(heard.append)
    assert len(threads.begun) == 2
    threads.over[1].callback("otherwise")
    assert heard[3:] == ["otherwise"]


def test_a_machine_without_jobs_tells_what_it_has(tmp_path: Path) -> None:
    look = decode_status(measure_status(tmp_path / "work"))
    assert look is not None
    assert look.jobs == {}
    assert min(look.memory, look.disk) > 0


def test_what_another_version_tells_is_unknown() -> None:
    assert decode_status("") is None
    assert decode_status('{"memory": 1, "disk": 1, "jobs": {"f": [8, 40]}}') is None
