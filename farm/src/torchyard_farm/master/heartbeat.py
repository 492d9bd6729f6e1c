"""Notices workers that hang or are cut off: Buildbot's own keepalive asks, and waits for ever."""

from collections.abc import Generator
from contextlib import suppress
from typing import Any

from twisted.internet import defer, error
from twisted.python import log

from torchyard_farm.master.halfway import tidy_up
from torchyard_farm.master.looping import LoopingService
from torchyard_farm.master.strays import look_after
from torchyard_farm.master.tries import Tries
from torchyard_farm.notes import GONE, note
from torchyard_farm.settings.occasions import CALENDAR


class Heartbeat(LoopingService):
    """Asks every worker what it does; one that does not say is cut off, and its jobs go on."""

    name = "heartbeat"

    def checkConfig(self, interval: int, patience: int, tries: Tries) -> None:
        pass

    @defer.inlineCallbacks
    def reconfigService(
        self, interval: int, patience: int, tries: Tries
    ) -> Generator[Any, Any, None]:
        yield super().reconfigService()
        self._patience = patience
        self._tries = tries
        self.repeat(self._ask_all, interval, now=False)

    def _ask_all(self) -> None:
        tidy_up(self.master.workers)
        for worker in list(self.master.workers.workers.values()):
            if worker.conn is not None and worker.name != CALENDAR:  # that is a part of ours
                self._ask(worker, worker.conn).addErrback(note)

    @defer.inlineCallbacks
    def _ask(self, worker: Any, connection: Any) -> Generator[Any, Any, None]:
        asked = connection.mind.callRemote("running")
        asked.addTimeout(self._patience, self.master.reactor)
        with suppress(*GONE):
            try:
                ages = yield asked
            except (defer.TimeoutError, error.TimeoutError):
                log.msg(f"worker {worker.name} gives no sign of life and is cut off")
                connection.mind.broker.transport.abortConnection()
            else:
                yield look_after(worker, connection, ages, self._tries)
