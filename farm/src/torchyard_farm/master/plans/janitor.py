"""Forgets jobs that are over since long, with their logs: Buildbot's tables would grow for ever."""

from collections.abc import Collection, Generator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.db.plan_tables import belongs_to_plan
from torchyard_farm.master.peers.plan_sync import withdraw_plans
from torchyard_farm.master.polling import PollingService
from torchyard_farm.scheduling.plans import Plans

_EVERY = 3600
_PORTION = 100
"""Jobs that are forgotten at one time: others want to use the tables as well."""


class Janitor(PollingService):
    """What an open plan needs is never forgotten, nor when something was done by the clock."""

    name = "janitor"

    def checkConfig(self, folder: str, keep: int, *, shared: bool) -> None:
        pass

    @defer.inlineCallbacks
    def reconfigService(self, folder: str, keep: int, *, shared: bool) -> Generator[Any, Any, None]:
        yield super().reconfigService()
        self._is_shared = shared
        self._plans = Plans(Path(folder))
        self._keep = keep
        # One of several masters may not have heard of all open plans yet.
        self.repeat(self._clean, _EVERY, now=not shared)

    @defer.inlineCallbacks
    def _clean(self) -> Generator[Any, Any, None]:
        database, before = self.master.db, int(self.master.reactor.seconds()) - self._keep
        count = 0
        while self.is_looping:
            forgotten = yield database.pool.do_with_transaction(
                forget_jobs, database.model, before, self._plans.open()
            )
            count += forgotten
            if not forgotten:
                break
        yield self._forget_plans(before)
        if count:
            log.msg(f"{count} jobs are forgotten that ended long ago")

    @defer.inlineCallbacks
    def _forget_plans(self, before: int) -> Generator[Any, Any, None]:
        """Forget plans that are over and old, and of which no job is left."""
        old = [name for name in self._plans.ended() if self._plans.moment(name) < before]
        known = yield self.master.db.pool.do(known_plans, self.master.db.model, old)
        if self._is_shared:  # then this one forgets with all others, or they would bring it back
            yield withdraw_plans(self.master, set(old) - known)
            return
        for name in set(old) - known:
            self._plans.forget(name)


def forget_jobs(connection: Any, model: Any, before: int, kept: Collection[str]) -> int:
    """Forget some jobs that ended before a moment, and are not of these plans; tell how many."""
    if connection.dialect.name == "sqlite":  # which else leaves behind what belongs to them
        connection.exec_driver_sql("PRAGMA foreign_keys = ON")
    sets = model.buildsets
    is_job = sets.c.external_idstring.contains("/")
    old = (
        sa.select(sets.c.id)
        .where(sets.c.complete == 1, sets.c.complete_at < before, is_job)
        .where(*(~belongs_to_plan(model, plan) for plan in kept))
        .limit(_PORTION)
    )
    numbers = [row.id for row in connection.execute(old)]
    if numbers:
        connection.execute(sets.delete().where(sets.c.id.in_(numbers)))
    return len(numbers)


def known_plans(connection: Any, model: Any, names: Collection[str]) -> set[str]:
    """Those of some plans of which there are jobs left."""
    return {
        name
        for name in names
        if connection.execute(sa.select(sa.exists().where(belongs_to_plan(model, name)))).scalar()
    }
