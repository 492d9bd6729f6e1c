"""Notices workers that hang or are cut off: Buildbot's own keepalive asks, and waits for ever."""

from collections.abc import Generator
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.buildbot_fixes.half_open import drop_half_open, forget_connections
from torchyard_farm.master.builds import MACHINE, followed_jobs
from torchyard_farm.master.db.attempts_db import AttemptHistory
from torchyard_farm.master.polling import PollingService
from torchyard_farm.master.status.orphaned_jobs import end_unwanted_jobs, record_returned_jobs
from torchyard_farm.master.status.worker_statuses import WorkerStatuses
from torchyard_farm.scheduling.worker_status import STATUS_CALL
from torchyard_farm.twisted_tools import CONNECTION_LOST, log_failure, with_timeout

Steps = Generator[Any, Any, None]


class Heartbeat(PollingService):
    """Asks every agent what its machine has and runs: whatever a master learns of these.

    One that does not say is cut off, and its jobs go on.
    """

    name = "heartbeat"

    def checkConfig(
        self, interval: int, patience: int, looks: WorkerStatuses, tries: AttemptHistory
    ) -> None:
        pass

    @defer.inlineCallbacks
    def reconfigService(
        self, interval: int, patience: int, looks: WorkerStatuses, tries: AttemptHistory
    ) -> Steps:
        yield super().reconfigService()
        if not self.is_looping:  # nobody is let in before
            model, own = self.master.db.model, sa.literal(self.master.masterid)
            yield self.master.db.pool.do_with_transaction(forget_connections, model, sa.select(own))
        self._patience = patience
        self._looks = looks
        self._tries = tries
        self.repeat(self._ask_all, interval, now=False)

    def _ask_all(self) -> None:
        drop_half_open(self.master.workers)
        agents = [
            (worker, machine)
            for worker in self.master.workers.workers.values()
            if worker.conn is not None
            and (machine := worker.properties.getProperty(MACHINE)) is not None
        ]
        self._looks.forget_strays(but_of={machine for _, machine in agents})
        followed = followed_jobs(self.master)
        heard: set[str] = set()
        for worker, machine in agents:
            mine = followed.get(machine, ())
            self._looks.meet(machine, worker, mine)  # it is older than what it tells now
            self._ask(worker.name, worker.conn, machine, heard).addErrback(log_failure)

    @defer.inlineCallbacks
    def _ask(self, agent: str, connection: Any, machine: str, heard: set[str]) -> Steps:
        """Ask an agent; what the first one of a machine says is as good as what the others do."""
        with suppress(*CONNECTION_LOST):
            asked = connection.mind.callRemote(STATUS_CALL)
            try:
                told = yield with_timeout(asked, self._patience, self.master.reactor)
            except defer.CancelledError:
                log.msg(f"worker {agent} gives no sign of life and is cut off")
                connection.mind.broker.transport.abortConnection()
            else:
                if machine not in heard:
                    heard.add(machine)
                    yield self._hear(machine, connection, told)

    @defer.inlineCallbacks
    def _hear(self, machine: str, connection: Any, told: str) -> Steps:
        followed = followed_jobs(self.master).get(machine, {})
        look = self._looks.hear(machine, told, followed)
        if look is not None:
            strays = {name: job for name, job in look.jobs.items() if name not in followed}
            yield record_returned_jobs(self.master, machine, look.jobs, self._tries)
            yield end_unwanted_jobs(self.master, machine, connection, strays)
