"""Deletes jobs that ended long ago, with their logs, from Buildbot's tables."""

from collections.abc import Collection
from pathlib import Path

import sqlalchemy as sa
from buildbot.db.model import Model
from twisted.python import log

from torchyard_farm.master.db.plan_tables import belongs_to_plan
from torchyard_farm.master.peers.plan_sync import withdraw_plans
from torchyard_farm.master.polling import PollingService
from torchyard_farm.scheduling.plans import Plans
from torchyard_farm.twisted_tools import async_to_deferred

_INTERVAL = 3600
_BATCH = 100
"""Maximum jobs deleted in a transaction, so that other queries do not wait long."""


class Janitor(PollingService):
    """Deletes old jobs, but keeps those of open plans, and the record of scheduled runs."""

    name = "janitor"

    def checkConfig(self, folder: str, keep: int, *, shared: bool) -> None:
        pass

    @async_to_deferred
    async def reconfigService(self, folder: str, keep: int, *, shared: bool) -> None:
        await super().reconfigService()
        self._is_shared = shared
        self._plans = Plans(Path(folder))
        self._keep = keep
        # One of several masters may not have synchronized all open plans yet.
        self.start_polling(self._clean, _INTERVAL, now=not shared)

    @async_to_deferred
    async def _clean(self) -> None:
        database, before = self.master.db, int(self.master.reactor.seconds()) - self._keep
        count = 0
        while self.is_polling:
            deleted = await database.pool.do_with_transaction(
                forget_jobs, database.model, before, self._plans.open()
            )
            count += deleted
            if not deleted:
                break
        await self._forget_plans(before)
        if count:
            log.msg(f"deleted {count} jobs that ended long ago")

    @async_to_deferred
    async def _forget_plans(self, before: int) -> None:
        """Delete old ended plans without remaining jobs."""
        old = [name for name in self._plans.ended() if self._plans.moment(name) < before]
        kept = await self.master.db.pool.do(known_plans, self.master.db.model, old)
        if self._is_shared:  # all masters must forget a plan, or they would copy it back
            await withdraw_plans(self.master, set(old) - kept)
            return
        for name in set(old) - kept:
            self._plans.forget(name)


def forget_jobs(
    connection: sa.Connection, model: type[Model], before: int, kept: Collection[str]
) -> int:
    """Delete a batch of jobs that ended before a moment, except of kept plans; return how many."""
    if connection.dialect.name == "sqlite":  # otherwise dependent rows would remain
        connection.exec_driver_sql("PRAGMA foreign_keys = ON")
    sets = model.buildsets
    is_job = sets.c.external_idstring.contains("/")
    old = (
        sa.select(sets.c.id)
        .where(sets.c.complete == 1, sets.c.complete_at < before, is_job)
        .where(*(~belongs_to_plan(model, plan) for plan in kept))
        .limit(_BATCH)
    )
    numbers = [row.id for row in connection.execute(old)]
    if numbers:
        connection.execute(sets.delete().where(sets.c.id.in_(numbers)))
    return len(numbers)


def known_plans(connection: sa.Connection, model: type[Model], names: Collection[str]) -> set[str]:
    """Return the plans that have jobs in the tables."""
    return {
        name
        for name in names
        if connection.execute(sa.select(sa.exists().where(belongs_to_plan(model, name)))).scalar()
    }
