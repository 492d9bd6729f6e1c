"""Detect workers that hang or are cut off: Buildbot's own keepalive waits forever."""

import json
from collections.abc import Mapping
from contextlib import suppress

import sqlalchemy as sa
from buildbot.db.model import Model
from buildbot.master import BuildMaster
from buildbot.worker.protocols.base import Connection
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.buildbot_fixes.half_open import drop_half_open, forget_connections
from torchyard_farm.master.builds import FINGERPRINT, MACHINE, followed_jobs
from torchyard_farm.master.db.attempts_db import VERDICT, AttemptHistory
from torchyard_farm.master.polling import PollingService
from torchyard_farm.master.status.worker_statuses import WorkerStatuses
from torchyard_farm.scheduling.attempts import AttemptVerdict
from torchyard_farm.scheduling.worker_status import STATUS_CALL, RunningJob
from torchyard_farm.twisted_tools import (
    CONNECTION_LOST,
    async_to_deferred,
    in_background,
    with_timeout,
)


async def record_returned_jobs(
    master: BuildMaster, machine: str, jobs: Mapping[str, RunningJob], attempts: AttemptHistory
) -> None:
    """Change the verdict of lost attempts whose jobs still run, unless restarted."""
    if not jobs or not attempts.may_be_lost_on(machine):
        return
    now = master.reactor.seconds()
    lost = await master.db.pool.do(_read_lost, master.db.model, machine)
    for build, request, ended, fingerprint in lost:
        if fingerprint in jobs and now - jobs[fingerprint].age <= ended:
            log.msg(f"{machine} is back with the job of build {build}")
            verdict = AttemptVerdict.CUT.value
            await master.data.updates.setBuildProperty(build, VERDICT, verdict, "run")
            attempts.remember(request, await attempts.read(master, request))


async def end_unwanted_jobs(
    master: BuildMaster, machine: str, connection: Connection, orphans: Mapping[str, RunningJob]
) -> None:
    """End orphaned jobs of a machine without an unfinished request."""
    if not orphans:
        return
    wanted = await master.db.pool.do(_read_wanted, master.db.model)
    for fingerprint, job in orphans.items():
        if fingerprint not in wanted and connection.mind is not None:
            log.msg(f"{job.name} on {machine} is no longer needed: it is ended")
            await connection.mind.callRemote("end", job.name)


def _read_wanted(connection: sa.Connection, model: type[Model]) -> set[str]:
    """Read the fingerprints of all submitted, unfinished jobs."""
    properties, requests = model.buildset_properties, model.buildrequests
    query = (
        sa.select(properties.c.property_value)
        .join(requests, requests.c.buildsetid == properties.c.buildsetid)
        .where(requests.c.complete == 0, properties.c.property_name == FINGERPRINT)
    )
    return {json.loads(value)[0] for (value,) in connection.execute(query)}


def _read_lost(
    connection: sa.Connection, model: type[Model], machine: str
) -> list[tuple[int, int, int, str]]:
    """Read the builds lost on a machine that will be retried."""
    builds, requests = model.builds, model.buildrequests
    wanted = {VERDICT: AttemptVerdict.LOST.value, MACHINE: machine}
    fingerprint = model.build_properties.alias()
    query = (
        sa.select(builds.c.id, builds.c.buildrequestid, builds.c.complete_at, fingerprint.c.value)
        .join(requests, requests.c.id == builds.c.buildrequestid)
        .join(fingerprint, fingerprint.c.buildid == builds.c.id)
        .where(
            requests.c.complete == 0,
            builds.c.complete_at.is_not(None),
            fingerprint.c.name == FINGERPRINT,
        )
    )
    for name, value in wanted.items():
        table = model.build_properties.alias()
        query = query.join(table, table.c.buildid == builds.c.id).where(
            table.c.name == name, table.c.value == json.dumps(value)
        )
    return [
        (build, request, ended, json.loads(value))
        for build, request, ended, value in connection.execute(query)
    ]


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
            model, this_master = self.master.db.model, sa.select(sa.literal(self.master.masterid))
            await self.master.db.pool.do_with_transaction(forget_connections, model, this_master)
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
            self._statuses.introduce(machine, worker, mine)  # before a newer answer arrives
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
