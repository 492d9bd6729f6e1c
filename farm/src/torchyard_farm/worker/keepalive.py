"""Keep a worker's connection to its master alive, and replace a dead one.

Defects of Buildbot's worker 4.3 (`pb.py`): it waits forever on a connection that the network has
dropped, and exits when a master answers its login with an error, as a stopping master does.
"""

from contextlib import suppress

from buildbot_worker.bot import Worker
from twisted.application.service import Service
from twisted.internet import defer
from twisted.python import log
from twisted.python.failure import Failure

from torchyard_farm.twisted_tools import (
    CONNECTION_LOST,
    ReactorTime,
    RemoteBroker,
    async_to_deferred,
    delay,
    global_reactor,
    start_loop,
    with_timeout,
)
from torchyard_farm.worker.failover import LoginFactory

_INTERVAL = 20
_PATIENCE = 40
_PAUSE = 5
"""Seconds between two keepalives, until one must be answered, and before a new login."""


def keep_alive(worker: Worker, clock: ReactorTime) -> None:
    """Watch the connection of a worker while it runs."""
    worker.bf.failedToGetPerspective = _log_in_again
    _Keepalive(worker.bf, clock).setServiceParent(worker)


class _Keepalive(Service):
    def __init__(self, factory: LoginFactory, clock: ReactorTime) -> None:
        self._factory = factory
        self._clock = clock

    def startService(self) -> None:
        super().startService()
        self._loop = start_loop(self._ping, _INTERVAL, self._clock)

    def stopService(self) -> None:
        self._loop.stop()
        super().stopService()

    @async_to_deferred
    async def _ping(self) -> None:
        master = self._factory.perspective
        if master is None:
            return
        with suppress(*CONNECTION_LOST):
            try:
                await with_timeout(master.callRemote("keepalive"), _PATIENCE, self._clock)
            except defer.CancelledError:
                log.msg("the master gives no sign of life: reconnecting")
                master.broker.transport.abortConnection()


def _log_in_again(why: Failure, broker: RemoteBroker) -> defer.Deferred[None]:
    """Close the connection after a while: Buildbot then opens the next one."""
    log.err(why, "could not log in")
    return delay(global_reactor(), _PAUSE, broker.transport.loseConnection)
