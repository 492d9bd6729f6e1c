"""What nobody waits for goes to the log; and how calls end whose connection is lost."""

from collections.abc import Callable
from typing import Any

from twisted.internet import defer, error, task
from twisted.internet.interfaces import IReactorTime
from twisted.python import log
from twisted.python.failure import Failure
from twisted.spread import pb

GONE = (error.ConnectionLost, error.ConnectionDone, pb.PBConnectionLost, pb.DeadReferenceError)


def note(why: Failure) -> None:
    """Write a failure into the log."""
    log.err(why)


def steady(what: Callable[[], Any], clock: IReactorTime) -> task.LoopingCall:
    """A loop that goes on when what it does fails: Twisted would end it for ever."""
    loop = task.LoopingCall(lambda: defer.maybeDeferred(what).addErrback(note))
    loop.clock = clock
    return loop
