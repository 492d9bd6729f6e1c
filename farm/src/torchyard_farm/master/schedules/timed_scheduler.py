"""Does what is due by the clock: a builder of the master's own, and who gives it work.

That a run was begun is a row of Buildbot's table of buildsets, with its name and when it was due:
so each is begun once, also when the master is killed, and by one of several masters.
"""

from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from buildbot.plugins import util, worker
from buildbot.schedulers.base import ReconfigurableBaseScheduler
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.peers.peers import may_submit_jobs
from torchyard_farm.master.polling import Polling
from torchyard_farm.master.schedules.scheduled_run import ScheduledRun
from torchyard_farm.settings.dates import ScheduleTimes, format_moment, next_run, parse_moment
from torchyard_farm.settings.farm import Farm
from torchyard_farm.settings.schedules import (
    SCHEDULE_BUILDER,
    run_name,
    schedule_command,
    schedule_page,
)

_LOOK = 5.0
"""Seconds between two looks at the clock."""


_STATE_CLASS = "Calendar"
"""The class name under which Buildbot's table `objects` knows this scheduler."""


class ConfigParts(NamedTuple):
    """What a master's configuration gets; nothing if nothing is done by the clock."""

    workers: list[Any]
    builders: list[Any]
    schedulers: list[Any]


def timed_parts(folder: Path, farm: Farm) -> ConfigParts:
    """What is needed to do what is due."""
    if not farm.occasions:
        return ConfigParts([], [], [])
    builder = util.BuilderConfig(
        name=SCHEDULE_BUILDER,
        workernames=[SCHEDULE_BUILDER],
        factory=util.BuildFactory([ScheduledRun(folder=str(folder))]),
    )
    due = {
        one.name: (schedule_command(one), schedule_page(one), one.times) for one in farm.occasions
    }
    scheduler = TimedScheduler(name=SCHEDULE_BUILDER, builderNames=[SCHEDULE_BUILDER], due=due)
    return ConfigParts([worker.LocalWorker(SCHEDULE_BUILDER)], [builder], [scheduler])


class TimedScheduler(Polling, ReconfigurableBaseScheduler):
    """Looks at the clock. Of several masters one has it, and another one if that is gone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._last: dict[str, datetime] = {}

    def checkConfig(
        self, builderNames: list[str], due: dict[str, tuple[str, str, ScheduleTimes]]
    ) -> None:
        super().checkConfig(builderNames=builderNames)

    @defer.inlineCallbacks
    def reconfigService(
        self, builderNames: list[str], due: dict[str, tuple[str, str, ScheduleTimes]]
    ) -> Generator[Any, Any, None]:
        yield super().reconfigService(builderNames=builderNames)
        self._due = due
        self._last = {}

    @defer.inlineCallbacks
    def activate(self) -> Generator[Any, Any, None]:
        yield super().activate()
        if self.enabled:
            find = self.master.db.state.getObjectId
            self._objectid = yield find(self.name, _STATE_CLASS)  # else Buildbot uses ours
            self._last = {}
            self.repeat(self._begin_due, _LOOK, now=True)

    @defer.inlineCallbacks
    def deactivate(self) -> Generator[Any, Any, None]:
        yield super().deactivate()
        self.cease()

    @defer.inlineCallbacks
    def _begin_due(self) -> Generator[Any, Any, None]:
        now = datetime.fromtimestamp(self.master.reactor.seconds(), UTC)
        for name, (verb, page, times) in self._due.items():
            if name not in self._last:
                self._last[name] = yield self._read_last(name, times, now)
            if next_run(now, times, self._last[name]) > now or not may_submit_jobs(self.master):
                continue
            self._last[name] = yield self._read_last(name, times, now)  # another one was quicker?
            due = next_run(now, times, self._last[name])
            if due <= now and self.is_looping:
                yield self._begin(name, verb, page, format_moment(due))
                self._last[name] = due

    @defer.inlineCallbacks
    def _read_last(
        self, name: str, times: ScheduleTimes, now: datetime
    ) -> Generator[Any, Any, datetime]:
        """When the last run was due, or when these times were seen first."""
        key = f"{name} at {times.clock:%H:%M} on {times.days}"
        since = yield self.getState(key, None)
        if since is None:
            since = format_moment(now)
            yield self.setState(key, since)
        begun = yield self.master.db.pool.do(self._newest, run_name(name, ""))
        return parse_moment(max(since, begun))

    def _newest(self, connection: Any, start: str) -> str:
        column = self.master.db.model.buildsets.c.external_idstring
        query = sa.select(sa.func.max(column)).where(column.startswith(start, autoescape=True))
        return (connection.execute(query).scalar() or "").removeprefix(start)

    @defer.inlineCallbacks
    def _begin(self, name: str, verb: str, page: str, due: str) -> Generator[Any, Any, None]:
        log.msg(f"{page} is due since {due}")
        builder = yield self.master.data.updates.findBuilderId(SCHEDULE_BUILDER)
        given = {"occasion": name, "verb": verb, "due": due, "virtual_builder_name": page}
        yield self.master.data.updates.addBuildset(
            waited_for=False,
            scheduler=self.name,
            reason=f"due at {due}",
            sourcestamps=[
                {"codebase": "", "repository": "", "branch": None, "revision": None, "project": ""}
            ],
            properties={key: (value, SCHEDULE_BUILDER) for key, value in given.items()}
            | {"virtual_builder_tags": ([SCHEDULE_BUILDER], SCHEDULE_BUILDER)},
            builderids=[builder],
            external_idstring=run_name(name, due),
        )
