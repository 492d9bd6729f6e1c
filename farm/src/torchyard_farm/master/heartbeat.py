"""Notices workers that hang or are cut off: Buildbot's own keepalive asks, and waits for ever."""

from collections.abc import Generator
from contextlib import suppress
from typing import Any

from buildbot.util.service import BuildbotService
from twisted.internet import defer, error, task
from twisted.python import log

from torchyard_farm.master.halfway import tidy_up
from torchyard_farm.master.strays import look_after
from torchyard_farm.master.tries import Tries
from torchyard_farm.notes import GONE, note, steady
from torchyard_farm.settings.occasions import CALENDAR


class Heartbeat(BuildbotService):
    """Asks every worker what it does; one that does not say is cut off, and its jobs go on."""

    name = "heartbeat"
    _loop: task.LoopingCall | None = None

    def checkConfig(self, interval: int, patience: int, tries: Tries) -> None:
        pass

    @defer.inlineCallbacks
    def reconfigService(
        self, interval: int, patience: int, tries: Tries
    ) -> Generator[Any, Any, None]:
        yield super().reconfigService()
        self._patience = patience
        self._tries = tries
        self._stop()
        self._loop = steady(self._ask_all, self.master.reactor)
        self._loop.start(interval, now=False)

    def stopService(self) -> Any:
        self._stop()
        return super().stopService()

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.stop()
            self._loop = None

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
