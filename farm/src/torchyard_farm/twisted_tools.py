"""Helpers for Twisted: coroutines, timeouts, loops that survive errors, and failures in the log."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar, cast

from twisted.internet import defer, error, reactor, task
from twisted.internet.base import DelayedCall
from twisted.internet.interfaces import IReactorTime
from twisted.python import log
from twisted.python.failure import Failure
from twisted.spread import pb

A = TypeVar("A")
P = ParamSpec("P")
T = TypeVar("T")

_TICK = 1.0

CONNECTION_LOST = (
    error.ConnectionLost,
    error.ConnectionDone,
    pb.PBConnectionLost,
    pb.DeadReferenceError,
)


class ReactorTime(Protocol):
    """The clock of a reactor, or of a test."""

    def seconds(self) -> float: ...

    def callLater(  # noqa: N802 - Twisted's name
        self, delay: float, call: Callable[[], object], /
    ) -> DelayedCall: ...


class Reactor(ReactorTime, Protocol):
    """The used part of Twisted's reactor."""

    def callWhenRunning(self, call: Callable[[], object], /) -> object: ...  # noqa: N802

    def addSystemEventTrigger(  # noqa: N802
        self, phase: str, event: str, call: Callable[[], object], /
    ) -> object: ...
    def callFromThread(self, call: Callable[[], object], /) -> None: ...  # noqa: N802
    def run(self) -> None: ...
    def stop(self) -> None: ...


class RemoteTransport(Protocol):
    """The network connection of a remote object."""

    def abortConnection(self) -> None: ...  # noqa: N802
    def loseConnection(self) -> None: ...  # noqa: N802


class RemoteBroker(Protocol):
    """One side of a Perspective Broker connection."""

    @property
    def disconnected(self) -> object: ...

    @property
    def transport(self) -> RemoteTransport: ...


class RemoteObject(Protocol):
    """An object of the other process, called over Perspective Broker."""

    @property
    def broker(self) -> RemoteBroker: ...
    def callRemote(self, name: str, *args: object) -> defer.Deferred[str]: ...  # noqa: N802


def global_reactor() -> Reactor:
    """Return this process's reactor; Twisted types it as a module."""
    return cast("Reactor", reactor)


def as_interface(clock: ReactorTime) -> IReactorTime:
    """Return a clock typed as Twisted's interface, which type checkers can't infer."""
    return cast("IReactorTime", clock)


def async_to_deferred(
    function: Callable[P, Coroutine[defer.Deferred[object], object, T]],
) -> Callable[P, defer.Deferred[T]]:
    """Decorate a coroutine function: a call starts the coroutine and returns its Deferred."""

    @wraps(function)
    def start(*args: P.args, **kwargs: P.kwargs) -> defer.Deferred[T]:
        return defer.ensureDeferred(function(*args, **kwargs))

    return start


def log_failure(why: Failure) -> None:
    """Write a failure to the log."""
    log.err(why)


def in_background(waiting: "defer.Deferred[T]") -> None:
    """Log the failure of a Deferred that is not awaited."""
    _ = waiting.addErrback(log_failure)


def with_timeout(
    waiting: "defer.Deferred[T]", seconds: float, clock: ReactorTime
) -> "defer.Deferred[T]":
    """Cancel a Deferred that has no result after a number of seconds.

    Seconds are counted by ticks. A suspension of the process for minutes is one tick: the
    answer may have arrived meanwhile, and timers fire before sockets are read.
    """
    left = seconds

    def count() -> None:
        nonlocal left
        left -= _TICK
        if left <= 0:
            waiting.cancel()

    def stop(result: A) -> A:
        if counting.running:
            counting.stop()
        return result

    counting = start_loop(count, _TICK, clock)
    return waiting.addBoth(stop)


def start_loop(
    call: Callable[[], object], interval: float, clock: ReactorTime, *, now: bool = False
) -> task.LoopingCall:
    """Start a loop that logs errors and continues; Twisted's own stops at the first one."""
    loop = task.LoopingCall(lambda: defer.maybeDeferred(call).addErrback(log_failure))
    loop.clock = as_interface(clock)
    _ = loop.start(interval, now=now)
    return loop


def delay(clock: ReactorTime, seconds: float, call: Callable[[], T]) -> "defer.Deferred[T]":
    """Call a function after a number of seconds."""
    return task.deferLater(as_interface(clock), seconds, call)
