"""A build of one job: its worker may be lost at any moment, and it needs few queries.

Defects of Buildbot 4.3 (`process/build.py`): a build never ends if its worker is lost during
preparation, or with an error; nor if it is cancelled between being chosen and being started.
"""

import json
from typing import ClassVar

import sqlalchemy as sa
from buildbot.process.build import Build
from buildbot.process.builder import Builder
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.results import CANCELLED, EXCEPTION, RETRY
from buildbot.process.workerforbuilder import AbstractWorkerForBuilder
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.buildbot_fixes.virtual_builders import virtual_builder_id
from torchyard_farm.master.db.attempts_db import ATTEMPT, VERDICT, AttemptHistory
from torchyard_farm.scheduling.attempts import AttemptVerdict, attempt_number
from torchyard_farm.twisted_tools import async_to_deferred


class JobBuild(Build):
    """A build that always ends."""

    _pages: ClassVar[dict[str, int]] = {}
    """Known virtual builders, whose tags need not be written again."""

    def __init__(
        self, requests: list[BuildRequest], builder: Builder, attempts: AttemptHistory
    ) -> None:
        super().__init__(requests, builder)
        self._attempts = attempts

    @async_to_deferred
    async def startBuild(self, workerforbuilder: AbstractWorkerForBuilder) -> None:
        try:
            await super().startBuild(workerforbuilder)
        except Exception:  # noqa: BLE001 - otherwise the job would never be retried
            log.err(None, "a build could not start, and is retried")
            step = self._preparation_step.stepid if self._preparation_step else None
            if step is not None:
                await self.master.data.updates.finishStep(step, RETRY, hidden=False)
            await self.buildFinished(["worker", "lost"], RETRY)
        else:
            if self.stopped and self._preparation_step is None:
                await self.buildFinished(["cancelled"], CANCELLED)

    def buildFinished(self, text: list[str], results: int) -> defer.Deferred[None]:
        is_lost = self.workerforbuilder.worker is None
        if (results == EXCEPTION and is_lost) or (results == CANCELLED and self._is_shutdown()):
            self.results = results = RETRY  # else the worse of both counts
        return super().buildFinished(text, results)

    def _is_shutdown(self) -> bool:
        """Return whether the master's shutdown cancelled a job, which must then resume."""
        is_unwanted = self.getProperty(VERDICT) == AttemptVerdict.ENDED.value
        return self.master.botmaster.shuttingDown and not is_unwanted

    @async_to_deferred
    async def getBuilderId(self) -> int:
        page = self.getProperty(self.VIRTUAL_BUILDERNAME_PROP)
        if page not in self._pages:
            self._pages[page] = await virtual_builder_id(self.master, page)
        return self._pages[page]

    @async_to_deferred
    async def _setup_locks(self) -> None:
        """Write all properties in one query.

        Buildbot calls this when all properties are known, and then writes the missing ones to the
        table, with a query for each.
        """
        await super()._setup_locks()
        worker = self.workerforbuilder.worker
        if worker is not None and worker.conn is not None:
            self.setupWorkerProperties(self.workerforbuilder)
        attempts = await self._attempts.read(self.master, self.requests[0].id)
        if (attempt := attempt_number(attempts)) > 1:
            self.setProperty(ATTEMPT, attempt, "tries")
        await self.master.db.pool.do_with_transaction(self._write_properties)

    def _write_properties(self, connection: sa.Connection) -> None:
        rows = [
            {"buildid": self.buildid, "name": name, "value": json.dumps(value), "source": source}
            for name, (value, source) in self.getProperties().asDict().items()
        ]
        connection.execute(self.master.db.model.build_properties.insert(), rows)
