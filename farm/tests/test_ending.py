"""A machine ends a job once, however many of its agents are told to."""

from pathlib import Path
from types import SimpleNamespace

from twisted.internet import defer

from torchyard_farm.machine.jobs import Jobs


def test_a_job_is_ended_once_at_a_time(tmp_path: Path) -> None:
    begun: list[tuple[object, ...]] = []
    over: list[defer.Deferred[None]] = []

    def apart(_: object, *args: object) -> defer.Deferred[None]:
        begun.append(args)
        over.append(defer.Deferred())
        return over[-1]

    jobs, bots = Jobs(tmp_path, apart), [SimpleNamespace() for _ in range(3)]
    for bot in bots:
        jobs.tell(bot)
        bot.remote_end("core-0123")
        bot.remote_end("core-4567")
        bot.remote_end("../core-0123")
    assert begun == [(tmp_path, "core-0123"), (tmp_path, "core-4567")]
    over[0].errback(OSError("it does not end"))
    bots[0].remote_end("core-0123")
    assert begun[2:] == [(tmp_path, "core-0123")]
