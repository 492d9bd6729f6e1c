"""Which master a machine works for: all its agents for the same, since memory is booked there."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from twisted.application.service import MultiService
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.twisted_tools import log_failure, resilient_loop

_LOOK = 1.0
_PATIENCE = 20
"""Looks at which there is no connection, and after which another master is tried.

It is not the time that counts: a machine that slept has not looked for its master meanwhile.
"""

_FAREWELL = 5.0
"""Seconds that agents have to end: one that hangs with its master must not keep the others."""

T = TypeVar("T")


class MasterFailover(MultiService, Generic[T]):
    """The agents of a machine, at the first of its masters that answers."""

    def __init__(
        self, reactor: Any, logins: Sequence[T], make: Callable[[T], Sequence[Any]]
    ) -> None:
        super().__init__()
        self._reactor = reactor
        self._logins = logins
        self._make = make
        self._turn = -1
        self._agents: list[Any] = []
        self._missed = 0
        self._loop = resilient_loop(self._look, reactor)

    def startService(self) -> None:
        super().startService()
        self._begin()
        self._loop.start(_LOOK, now=False)

    def stopService(self) -> Any:
        if self._loop.running:
            self._loop.stop()
        return super().stopService()

    def _begin(self) -> None:
        self._turn = (self._turn + 1) % len(self._logins)
        self._missed = 0
        self._agents = list(self._make(self._logins[self._turn]))
        for agent in self._agents:
            agent.setServiceParent(self)

    @defer.inlineCallbacks
    def _look(self) -> Any:
        self._missed += 1
        if any(map(_is_connected, self._agents)):
            self._missed = 0
        elif len(self._logins) > 1 and self._missed > _PATIENCE:
            log.msg("the master does not answer: another one is tried")
            ended = [defer.maybeDeferred(agent.disownServiceParent) for agent in self._agents]
            waiting: Any = defer.DeferredList([one.addErrback(log_failure) for one in ended])
            yield waiting.addTimeout(_FAREWELL, self._reactor).addErrback(log_failure)
            self._begin()


def _is_connected(agent: Any) -> bool:
    perspective = agent.bf.perspective
    return perspective is not None and not perspective.broker.disconnected
