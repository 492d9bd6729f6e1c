"""Several masters on one database: which are alive, and their messages.

Buildbot's masters communicate through a message router, without which they stop. Here each polls
the database every two seconds instead, which all of them need anyway.
"""

import os
import signal
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa
from buildbot.master import BuildMaster
from buildbot.mq.base import QueueRef
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.buildbot_fixes.half_open import forget_connections
from torchyard_farm.master.db.shared_state import SharedState
from torchyard_farm.master.dispatch.dispatcher import Dispatcher
from torchyard_farm.master.peers.plan_sync import PLANS, sync_plans
from torchyard_farm.master.polling import PollingService
from torchyard_farm.scheduling.plan_differences import ClosedRows
from torchyard_farm.scheduling.plans import Plans
from torchyard_farm.twisted_tools import async_to_deferred

_INTERVAL = 2.0
"""Seconds between two polls of the database."""

_FRESH = 10.0
"""Seconds after a poll during which other masters consider this one alive."""

_DEAD = 30.0
"""Seconds without a sign of life after which a master is dead, and others take over."""

_REQUESTS = "asks"


def may_submit_jobs(master: BuildMaster) -> bool:
    """Return whether a master may submit jobs; after a suspension, others may consider it dead."""
    peers = master.service_manager.namedServices.get(PeerMasters.name)
    return not isinstance(peers, PeerMasters) or peers.is_fresh()


async def share_plan(master: BuildMaster, plans: Plans, name: str) -> None:
    """Let other masters, if there are any, see a plan before the first of its jobs."""
    if PeerMasters.name in master.service_manager.namedServices:
        await SharedState(master, PLANS).put(name, plans.text(name))


class PeerMasters(PollingService):
    """Coordinates the masters of one database."""

    name = "peers"

    def __init__(self, folder: str, when_lost: Callable[[], None]) -> None:
        super().__init__(folder=folder, when_lost=when_lost)
        self._consumers: list[QueueRef] = []
        self._buildsets = ClosedRows()
        self._signs: dict[int, tuple[tuple[bool, datetime] | None, float]] = {}
        self._polled: float | None = None

    def checkConfig(self, folder: str, when_lost: Callable[[], None]) -> None:
        pass

    @async_to_deferred
    async def reconfigService(self, folder: str, when_lost: Callable[[], None]) -> None:
        await super().reconfigService()
        self._plans = Plans(Path(folder))
        self._when_lost = when_lost
        if not self.is_polling:
            for kind, verb in (("builds", "stop"), ("buildrequests", "cancel")):
                consumer = await self.master.mq.startConsuming(
                    self._pass_on, ("control", kind, None, verb)
                )
                self._consumers.append(consumer)
            await self._poll()
            self.start_polling(self._poll, _INTERVAL, now=False)

    @async_to_deferred
    async def stopService(self) -> None:
        self.stop_polling()
        while self._consumers:
            await defer.maybeDeferred(self._consumers.pop().stopConsuming)
        await super().stopService()

    def is_fresh(self) -> bool:
        """Return whether the last poll is recent."""
        return self._polled is not None and self.master.reactor.seconds() - self._polled < _FRESH

    @async_to_deferred
    async def _poll(self) -> None:
        if self.master.botmaster.shuttingDown:
            return  # Buildbot itself marks this master as inactive
        was_dead = await self.master.db.masters.setMasterState(self.master.masterid, active=True)
        if was_dead and self._polled is not None:
            log.msg("the other masters consider this one dead: it stops, and may be restarted")
            os.kill(os.getpid(), signal.SIGTERM)
            return
        now = self.master.reactor.seconds()
        if not self.is_fresh():  # this master was suspended, or the database unavailable
            self._signs.clear()
        await self._take_over(now)
        await sync_plans(self.master, self._plans)
        await self._receive()
        self._polled = now
        dispatcher = self.master.service_manager.namedServices.get(Dispatcher.name)
        if isinstance(dispatcher, Dispatcher):
            dispatcher.wake_all()

    async def _take_over(self, now: float) -> None:
        """Take over from masters without a sign of life, by this machine's clock alone."""
        for other in await self.master.db.masters.getMasters():
            sign = (other.active, other.last_active)
            seen, since = self._signs.get(other.id, (None, now))
            if sign != seen:
                self._signs[other.id] = sign, now
                if seen is not None and not other.active:
                    self._when_lost()
            elif other.active and now - since > _DEAD:
                log.msg(f"master {other.name} gives no sign of life: this one takes over")
                self._when_lost()
                if await self.master.db.masters.setMasterState(other.id, active=False):
                    await self.master.data.rtypes.master._masterDeactivated(  # noqa: SLF001
                        other.id, other.name
                    )
        await self.master.db.pool.do(self._release)

    def _release(self, connection: sa.Connection) -> None:
        """Release claims and worker connections of dead masters; Buildbot releases only its own."""
        model = self.master.db.model
        dead = sa.select(model.masters.c.id).where(model.masters.c.active == 0)
        waiting = sa.select(model.buildrequests.c.id).where(model.buildrequests.c.complete == 0)
        claims = model.buildrequest_claims
        these = sa.and_(claims.c.masterid.in_(dead), claims.c.brid.in_(waiting))
        connection.execute(claims.delete().where(these))
        forget_connections(connection, model, dead)
        connection.commit()

    async def _receive(self) -> None:
        """Announce buildsets that other masters closed, and carry out their requests."""
        rows = await self.master.db.pool.do(self._read_buildsets)
        for buildset in self._buildsets.update(rows):
            found = await self.master.data.get(("buildsets", buildset))
            self.master.mq.produce(("buildsets", str(buildset), "complete"), found)
        requests = SharedState(self.master, _REQUESTS)
        for name in await requests.names(f"{self.master.masterid}/"):
            _, kind, number, verb = name.split("/")
            reason = await requests.get(name)
            self.master.mq.produce(("control", kind, number, verb), {"reason": reason})
            await requests.remove(name)

    def _read_buildsets(self, connection: sa.Connection) -> dict[int, bool]:
        sets = self.master.db.model.buildsets
        wanted = sa.or_(sets.c.complete == 0, sets.c.id > self._buildsets.since)
        query = sa.select(sets.c.id, sets.c.complete).where(wanted)
        return {row.id: bool(row.complete) for row in connection.execute(query)}

    @async_to_deferred
    async def _pass_on(self, key: tuple[str, str, str, str], request: Mapping[str, str]) -> None:
        """Pass a request to stop a job to the other master that runs it, if any."""
        _, kind, number, verb = key
        found = await self.master.data.get((kind, number))
        owner = found and found["masterid" if kind == "builds" else "claimed_by_masterid"]
        if owner not in (None, self.master.masterid):
            requests = SharedState(self.master, _REQUESTS)
            await requests.put(f"{owner}/{kind}/{number}/{verb}", request.get("reason", ""))
