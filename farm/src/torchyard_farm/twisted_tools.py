"""What nobody waits for goes to the log; how calls end whose connection is lost; and patience."""

from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet import defer, error, task
from twisted.internet.interfaces import IReactorTime
from twisted.python import log
from twisted.python.failure import Failure
from twisted.spread import pb

A = TypeVar("A")
T = TypeVar("T")

_SECOND = 1.0

CONNECTION_LOST = (
    error.ConnectionLost,
    error.ConnectionDone,
    pb.PBConnectionLost,
    pb.DeadReferenceError,
)


def log_failure(why: Failure) -> None:
    """Write a failure into the log."""
    log.err(why)


def with_timeout(
    asked: "defer.Deferred[T]", seconds: float, clock: IReactorTime
) -> "defer.Deferred[T]":
    """Let an answer take so many seconds, and cancel it then.

    They are counted one by one, and those in which this process stood still as one: an answer may
    have come meanwhile, and it is not read before what was to happen by the clock.
    """
    left = seconds

    def count() -> None:
        nonlocal left
        left -= _SECOND
        if left <= 0:
            asked.cancel()

    def stop(answer: A) -> A:
        if counting.running:
            counting.stop()
        return answer

    counting = resilient_loop(count, clock)
    counting.start(_SECOND, now=False)
    return asked.addBoth(stop)


def resilient_loop(what: Callable[[], Any], clock: IReactorTime) -> task.LoopingCall:
    """A loop that goes on when what it does fails: Twisted would end it for ever."""
    loop = task.LoopingCall(lambda: defer.maybeDeferred(what).addErrback(log_failure))
    loop.clock = clock
    return loop
