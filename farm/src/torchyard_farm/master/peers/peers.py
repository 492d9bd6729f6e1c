"""Several masters on one database: which of them lives, and what each has to tell the others.

Buildbot's masters hear of each other through a message router, without which they stop. Here each
looks at the database every two seconds instead, which all of them need anyway.
"""

import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from twisted.internet import defer
from twisted.python import log

from torchyard.errors import SelectionError
from torchyard_farm.master.buildbot_fixes.half_open import forget_connections
from torchyard_farm.master.db.shared_state import SharedState
from torchyard_farm.master.dispatch.dispatcher import Dispatcher
from torchyard_farm.master.peers.plan_sync import PLANS, sync_plans
from torchyard_farm.master.polling import PollingService
from torchyard_farm.scheduling.plan_differences import ClosedRows
from torchyard_farm.scheduling.plans import FarmPlan, Plans, decode_plan

_LOOK = 2.0
"""Seconds between two looks at the database."""

_SURE = 10.0
"""Seconds after a look for which a master may be sure that the others believe it to be alive."""

_DEAD = 30.0
"""Seconds without a sign of life after which a master is dead, and others do its work."""

_ASKS = "asks"

Steps = Generator[Any, Any, None]


def may_submit_jobs(master: Any) -> bool:
    """Whether a master may send jobs: one that slept may have been taken for dead meanwhile."""
    peers = master.service_manager.namedServices.get(PeerMasters.name)
    return peers is None or peers.is_sure()


@defer.inlineCallbacks
def share_plan(master: Any, plans: Plans, name: str) -> Steps:
    """Let other masters, if there are any, see a plan before they see the first of its jobs."""
    if PeerMasters.name in master.service_manager.namedServices:
        yield SharedState(master, PLANS).put(name, plans.text(name))


@defer.inlineCallbacks
def find_plan(master: Any, plans: Plans, name: str) -> Generator[Any, Any, FarmPlan]:
    """A plan, also one that another master was given a moment ago."""
    try:
        return plans.read(name)
    except SelectionError:
        text = yield SharedState(master, PLANS).get(name)
        if text is None:
            raise
        return decode_plan(text)


class PeerMasters(PollingService):
    """Keeps the masters of one database together."""

    name = "peers"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._consumers: list[Any] = []
        self._watch = ClosedRows()
        self._signs: dict[int, tuple[Any, float]] = {}
        self._looked: float | None = None

    def checkConfig(self, folder: str, when_lost: Callable[[], None]) -> None:
        pass

    @defer.inlineCallbacks
    def reconfigService(self, folder: str, when_lost: Callable[[], None]) -> Steps:
        yield super().reconfigService()
        self._plans = Plans(Path(folder))
        self._when_lost = when_lost
        if not self.is_looping:
            for kind, verb in (("builds", "stop"), ("buildrequests", "cancel")):
                consumer = yield self.master.mq.startConsuming(
                    self._pass_on, ("control", kind, None, verb)
                )
                self._consumers.append(consumer)
            yield self._look()
            self.repeat(self._look, _LOOK, now=False)

    @defer.inlineCallbacks
    def stopService(self) -> Steps:
        self.cease()
        while self._consumers:
            yield self._consumers.pop().stopConsuming()
        yield super().stopService()

    def is_sure(self) -> bool:
        return self._looked is not None and self.master.reactor.seconds() - self._looked < _SURE

    @defer.inlineCallbacks
    def _look(self) -> Steps:
        if self.master.botmaster.shuttingDown:
            return  # it says itself that it is gone
        was_dead = yield self.master.db.masters.setMasterState(self.master.masterid, active=True)
        if was_dead and self._looked is not None:
            log.msg("the other masters took this one for dead: it ends, and may be started anew")
            os.kill(os.getpid(), signal.SIGTERM)
            return
        now = self.master.reactor.seconds()
        if not self.is_sure():  # it was us who slept, or the database was away
            self._signs.clear()
        yield self._bury(now)
        yield sync_plans(self.master, self._plans)
        yield self._hear()
        self._looked = now
        desk = self.master.service_manager.namedServices.get(Dispatcher.name)
        if desk is not None:
            desk.look_everywhere()

    @defer.inlineCallbacks
    def _bury(self, now: float) -> Steps:
        """Take over from masters that give no sign of life, by this machine's clock alone."""
        for other in (yield self.master.db.masters.getMasters()):
            sign = (other.active, other.last_active)
            known, since = self._signs.get(other.id, (None, now))
            if sign != known:
                self._signs[other.id] = sign, now
                if known is not None and not other.active:
                    self._when_lost()
            elif other.active and now - since > _DEAD:
                log.msg(f"master {other.name} gives no sign of life: this one takes over")
                self._when_lost()
                if (yield self.master.db.masters.setMasterState(other.id, active=False)):
                    yield self.master.data.rtypes.master._masterDeactivated(  # noqa: SLF001
                        other.id, other.name
                    )
        yield self.master.db.pool.do(self._release)

    def _release(self, connection: Any) -> None:
        """Put jobs back that dead masters have claimed: Buildbot only does so with its own.

        And forget who was connected to them.
        """
        model = self.master.db.model
        dead = sa.select(model.masters.c.id).where(model.masters.c.active == 0)
        waiting = sa.select(model.buildrequests.c.id).where(model.buildrequests.c.complete == 0)
        claims = model.buildrequest_claims
        these = sa.and_(claims.c.masterid.in_(dead), claims.c.brid.in_(waiting))
        connection.execute(claims.delete().where(these))
        forget_connections(connection, model, dead)
        connection.commit()

    @defer.inlineCallbacks
    def _hear(self) -> Steps:
        """Tell this master what others have done, and what they ask of it."""
        for buildset in self._watch.look((yield self.master.db.pool.do(self._read_buildsets))):
            told = yield self.master.data.get(("buildsets", buildset))
            self.master.mq.produce(("buildsets", str(buildset), "complete"), told)
        drawer = SharedState(self.master, _ASKS)
        for name in (yield drawer.names(f"{self.master.masterid}/")):
            _, kind, number, verb = name.split("/")
            reason = yield drawer.get(name)
            self.master.mq.produce(("control", kind, number, verb), {"reason": reason})
            yield drawer.remove(name)

    def _read_buildsets(self, connection: Any) -> dict[int, bool]:
        sets = self.master.db.model.buildsets
        wanted = sa.or_(sets.c.complete == 0, sets.c.id > self._watch.since)
        query = sa.select(sets.c.id, sets.c.complete).where(wanted)
        return {row.id: bool(row.complete) for row in connection.execute(query)}

    @defer.inlineCallbacks
    def _pass_on(self, key: tuple[str, str, str, str], told: dict[str, str]) -> Steps:
        """Ask the master that a job runs at to stop it, if that is another one."""
        _, kind, number, verb = key
        found = yield self.master.data.get((kind, number))
        owner = found and found["masterid" if kind == "builds" else "claimed_by_masterid"]
        if owner not in (None, self.master.masterid):
            asks = SharedState(self.master, _ASKS)
            yield asks.put(f"{owner}/{kind}/{number}/{verb}", told.get("reason", ""))
