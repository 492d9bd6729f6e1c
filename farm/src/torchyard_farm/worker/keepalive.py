"""Keeps a worker's connection to its master alive, and makes a new one if that fails.

Left alone, Buildbot's worker waits for ever on a connection that a network has forgotten, and ends
itself when a master answers its login with an error, as one does that is about to stop.
"""

from collections.abc import Generator
from contextlib import suppress
from typing import Any

from twisted.application.service import Service
from twisted.internet import defer, reactor, task
from twisted.python import log

from torchyard_farm.twisted_tools import CONNECTION_LOST, resilient_loop, with_timeout

_INTERVAL = 20
_PATIENCE = 40
_PAUSE = 5
"""Seconds between two signs of life, until one must be answered, and before a new login."""


def keep_alive(agent: Any, clock: Any) -> None:
    """Look after the connection of one agent, for as long as that runs."""
    agent.bf.failedToGetPerspective = _log_in_again
    _Keepalive(agent.bf, clock).setServiceParent(agent)


class _Keepalive(Service):
    def __init__(self, factory: Any, clock: Any) -> None:
        self._loop = resilient_loop(lambda: _ask(factory.perspective, clock), clock)

    def startService(self) -> None:
        super().startService()
        self._loop.start(_INTERVAL, now=False)

    def stopService(self) -> None:
        self._loop.stop()
        super().stopService()


@defer.inlineCallbacks
def _ask(perspective: Any, clock: Any) -> Generator[Any, Any, None]:
    if perspective is None:
        return
    with suppress(*CONNECTION_LOST):
        try:
            yield with_timeout(perspective.callRemote("keepalive"), _PATIENCE, clock)
        except defer.CancelledError:
            log.msg("the master gives no sign of life: connecting anew")
            perspective.broker.transport.abortConnection()


def _log_in_again(why: Any, broker: Any) -> Any:
    """The master did not let us in: end this connection after a while, and the next one follows."""
    log.err(why, "could not log in")
    return task.deferLater(reactor, _PAUSE, broker.transport.loseConnection)
