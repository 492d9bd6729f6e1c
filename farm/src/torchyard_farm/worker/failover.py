"""Choose a machine's master: all its workers use the same one, which tracks its memory."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from twisted.application.service import MultiService
from twisted.internet import defer, task
from twisted.python import log

from torchyard_farm.twisted_tools import (
    ReactorTime,
    RemoteObject,
    as_interface,
    async_to_deferred,
    log_failure,
    start_loop,
)

_INTERVAL = 1.0
_PATIENCE = 20
"""Checks without a connection after which another master is tried.

Checks are counted, not seconds: a suspended machine does not search for its master.
"""

_STOP_TIMEOUT = 5.0
"""Seconds for workers to stop, so that a hanging one can't block the others."""

T = TypeVar("T")


class LoginFactory(Protocol):
    """The connection of a worker."""

    @property
    def perspective(self) -> RemoteObject | None: ...


class WorkerService(Protocol):
    """The used part of Buildbot's worker."""

    @property
    def bf(self) -> LoginFactory: ...
    def setServiceParent(self, parent: MultiService) -> object: ...
    def disownServiceParent(self) -> object: ...


class MasterFailover(MultiService, Generic[T]):
    """The workers of a machine, connected to the first of its masters that answers."""

    def __init__(
        self,
        reactor: ReactorTime,
        logins: Sequence[T],
        make: Callable[[T], Sequence[WorkerService]],
    ) -> None:
        super().__init__()
        self._reactor = reactor
        self._logins = logins
        self._make = make
        self._current = -1
        self._workers: list[WorkerService] = []
        self._missed = 0
        self._loop: task.LoopingCall | None = None

    def startService(self) -> None:
        super().startService()
        self._use_next_master()
        self._loop = start_loop(self._check, _INTERVAL, self._reactor)

    def stopService(self) -> defer.Deferred[object]:
        if self._loop is not None and self._loop.running:
            self._loop.stop()
        stopped: defer.Deferred[object] = super().stopService()
        return stopped

    def _use_next_master(self) -> None:
        self._current = (self._current + 1) % len(self._logins)
        self._missed = 0
        self._workers = list(self._make(self._logins[self._current]))
        for worker in self._workers:
            worker.setServiceParent(self)

    @async_to_deferred
    async def _check(self) -> None:
        self._missed += 1
        if any(map(_is_connected, self._workers)):
            self._missed = 0
        elif len(self._logins) > 1 and self._missed > _PATIENCE:
            log.msg("the master does not answer: the next one is tried")
            stopped = [
                defer.maybeDeferred(worker.disownServiceParent).addErrback(log_failure)
                for worker in self._workers
            ]
            waiting = defer.DeferredList(stopped)
            limited = waiting.addTimeout(_STOP_TIMEOUT, as_interface(self._reactor))
            await limited.addErrback(log_failure)
            self._use_next_master()


def _is_connected(worker: WorkerService) -> bool:
    perspective = worker.bf.perspective
    return perspective is not None and not perspective.broker.disconnected
