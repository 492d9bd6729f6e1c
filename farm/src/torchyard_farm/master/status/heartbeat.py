"""Detects workers that hang or are cut off: Buildbot's own keepalive waits for ever."""

from contextlib import suppress

import sqlalchemy as sa
from buildbot.worker.protocols.base import Connection
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.buildbot_fixes.half_open import drop_half_open, forget_connections
from torchyard_farm.master.builds import MACHINE, followed_jobs
from torchyard_farm.master.db.attempts_db import AttemptHistory
from torchyard_farm.master.polling import PollingService
from torchyard_farm.master.status.orphaned_jobs import end_unwanted_jobs, record_returned_jobs
from torchyard_farm.master.status.worker_statuses import WorkerStatuses
from torchyard_farm.scheduling.worker_status import STATUS_CALL
from torchyard_farm.twisted_tools import (
    CONNECTION_LOST,
    async_to_deferred,
    in_background,
    with_timeout,
)


class Heartbeat(PollingService):
    """Polls every worker for its machine's resources and running jobs.

    A worker that does not answer is disconnected; its job continues.
    """

    name = "heartbeat"

    def checkConfig(
        self, interval: int, patience: int, statuses: WorkerStatuses, attempts: AttemptHistory
    ) -> None:
        pass

    @async_to_deferred
    async def reconfigService(
        self, interval: int, patience: int, statuses: WorkerStatuses, attempts: AttemptHistory
    ) -> None:
        await super().reconfigService()
        if not self.is_polling:  # no worker can connect before
            model, own = self.master.db.model, sa.select(sa.literal(self.master.masterid))
            await self.master.db.pool.do_with_transaction(forget_connections, model, own)
        self._patience = patience
        self._statuses = statuses
        self._attempts = attempts
        self.start_polling(self._poll_all, interval, now=False)

    def _poll_all(self) -> None:
        drop_half_open(self.master.workers)
        workers = [
            (worker, worker.conn, machine)
            for worker in self.master.workers.workers.values()
            if worker.conn is not None
            and (machine := worker.properties.getProperty(MACHINE)) is not None
        ]
        self._statuses.forget_orphans(except_on={machine for *_, machine in workers})
        followed = followed_jobs(self.master)
        answered: set[str] = set()
        for worker, connection, machine in workers:
            mine = followed.get(machine, ())
            self._statuses.introduce(machine, worker, mine)  # before the newer answer arrives
            in_background(self._poll(worker.name, connection, machine, answered))

    @async_to_deferred
    async def _poll(
        self, worker: str, connection: Connection, machine: str, answered: set[str]
    ) -> None:
        """Poll a worker. All workers of a machine report the same: the first answer counts."""
        mind = connection.mind
        if mind is None:
            return
        with suppress(*CONNECTION_LOST):
            waiting = mind.callRemote(STATUS_CALL)
            try:
                report = await with_timeout(waiting, self._patience, self.master.reactor)
            except defer.CancelledError:
                log.msg(f"worker {worker} gives no sign of life and is disconnected")
                mind.broker.transport.abortConnection()
            else:
                if machine not in answered:
                    answered.add(machine)
                    await self._take_report(machine, connection, report)

    async def _take_report(self, machine: str, connection: Connection, report: str) -> None:
        followed = followed_jobs(self.master).get(machine, {})
        status = self._statuses.update(machine, report, followed)
        if status is not None:
            orphans = {name: job for name, job in status.jobs.items() if name not in followed}
            await record_returned_jobs(self.master, machine, status.jobs, self._attempts)
            await end_unwanted_jobs(self.master, machine, connection, orphans)
