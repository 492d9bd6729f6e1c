"""Start nightly and daily runs when they are due, on a builder of the master itself.

A started run is a row in Buildbot's table of buildsets, with its name and due time. So
each is started once, even if the master is killed, and by only one of several masters.
"""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa
from buildbot.plugins import util, worker
from buildbot.process.buildstep import BuildStep, ShellMixin
from buildbot.process.results import FAILURE, RETRY, SUCCESS
from buildbot.schedulers.base import ReconfigurableBaseScheduler
from twisted.python import log

from torchyard_farm.master.peers.peers import may_submit_jobs
from torchyard_farm.master.polling import Polling
from torchyard_farm.settings.dates import ScheduleTimes, format_moment, next_run, parse_moment
from torchyard_farm.settings.farm import Farm
from torchyard_farm.settings.schedules import (
    SCHEDULE_BUILDER,
    run_name,
    schedule_command,
    schedule_page,
)
from torchyard_farm.twisted_tools import async_to_deferred

_TIME_LIMIT = 2 * 3600
"""Maximum seconds, so that a hanging command can't block tomorrow's run."""

_OPTIONS = {"workdir": ".", "timeout": None, "maxTime": _TIME_LIMIT, "logEnviron": False}


class ScheduledRun(ShellMixin, BuildStep):
    """Makes a plan in a separate process, so that the master is not blocked."""

    name = "plan"
    flunkOnFailure = True
    updateBuildSummaryPolicy = [SUCCESS, FAILURE]  # noqa: RUF012 - Buildbot's interface

    def __init__(self, folder: str) -> None:
        self._folder = folder
        super().__init__(**self.setupShellMixin(_OPTIONS))

    @async_to_deferred
    async def run(self) -> int:
        verb, name, due = map(self.getProperty, ("verb", "occasion", "due"))
        argv = [sys.executable, "-m", "torchyard", "farm", verb, self._folder, name, "--due", due]
        command = await self.makeRemoteShellCommand(
            command=argv, collectStdout=True, collectStderr=True
        )
        await self.runCommand(command)
        if self.stopped and self.master.botmaster.shuttingDown:
            return RETRY
        output = (*command.stdout.splitlines(), *command.stderr.splitlines())  # a plan, or an error
        self.descriptionDone = next(filter(None, output), "no output")
        self.setProperty("told", self.descriptionDone, self.name)
        return FAILURE if command.didFail() else SUCCESS


_INTERVAL = 5.0
"""Seconds between two checks of the clock."""

_STATE_CLASS = "Calendar"
"""The class name of this scheduler in Buildbot's table `objects`."""

Schedules = Mapping[str, tuple[str, str, ScheduleTimes]]
"""Command, history page and times by name."""


class ConfigParts(NamedTuple):
    """Entries of a master's configuration."""

    workers: list[worker.LocalWorker]
    builders: list[util.BuilderConfig]
    schedulers: list["TimedScheduler"]


def timed_parts(folder: Path, farm: Farm) -> ConfigParts:
    """Return the entries for a farm's schedules; empty if it has none."""
    if not farm.schedules:
        return ConfigParts([], [], [])
    builder = util.BuilderConfig(
        name=SCHEDULE_BUILDER,
        workernames=[SCHEDULE_BUILDER],
        factory=util.BuildFactory([ScheduledRun(folder=str(folder))]),
    )
    due = {
        one.name: (schedule_command(one), schedule_page(one), one.times) for one in farm.schedules
    }
    scheduler = TimedScheduler(SCHEDULE_BUILDER, [SCHEDULE_BUILDER], due)
    return ConfigParts([worker.LocalWorker(SCHEDULE_BUILDER)], [builder], [scheduler])


class TimedScheduler(Polling, ReconfigurableBaseScheduler):
    """Watches the clock. It runs on one of several masters; another takes over if that is gone."""

    def __init__(self, name: str, builderNames: list[str], due: Schedules) -> None:
        super().__init__(name=name, builderNames=builderNames, due=due)
        self._last: dict[str, datetime] = {}

    def checkConfig(self, builderNames: list[str], due: Schedules) -> None:
        super().checkConfig(builderNames=builderNames)

    @async_to_deferred
    async def reconfigService(self, builderNames: list[str], due: Schedules) -> None:
        await super().reconfigService(builderNames=builderNames)
        self._due = due
        self._last = {}

    @async_to_deferred
    async def activate(self) -> None:
        await super().activate()
        if self.enabled:
            find = self.master.db.state.getObjectId
            self._objectid = await find(self.name, _STATE_CLASS)
            self._last = {}
            self.start_polling(self._start_due, _INTERVAL, now=True)

    @async_to_deferred
    async def deactivate(self) -> None:
        await super().deactivate()
        self.stop_polling()

    @async_to_deferred
    async def _start_due(self) -> None:
        now = datetime.fromtimestamp(self.master.reactor.seconds(), UTC)
        for name, (verb, page, times) in self._due.items():
            if name not in self._last:
                self._last[name] = await self._read_last(name, times, now)
            if next_run(now, times, self._last[name]) > now or not may_submit_jobs(self.master):
                continue
            # Read it again: another master may have started the run.
            self._last[name] = await self._read_last(name, times, now)
            due = next_run(now, times, self._last[name])
            if due <= now and self.is_polling:
                await self._start(name, verb, page, format_moment(due))
                self._last[name] = due

    async def _read_last(self, name: str, times: ScheduleTimes, now: datetime) -> datetime:
        """Return when the last run was due, or when these times were configured."""
        key = f"{name} at {times.clock:%H:%M} on {times.days}"
        since: str | None = await self.getState(key, None)
        if since is None:
            since = format_moment(now)
            await self.setState(key, since)
        started = await self.master.db.pool.do(self._newest, run_name(name, ""))
        return parse_moment(max(since, started))

    def _newest(self, connection: sa.Connection, start: str) -> str:
        column = self.master.db.model.buildsets.c.external_idstring
        query = sa.select(sa.func.max(column)).where(column.startswith(start, autoescape=True))
        found: str | None = connection.execute(query).scalar()
        return (found or "").removeprefix(start)

    async def _start(self, name: str, verb: str, page: str, due: str) -> None:
        log.msg(f"{page} is due since {due}")
        builder = await self.master.data.updates.findBuilderId(SCHEDULE_BUILDER)
        given = {"occasion": name, "verb": verb, "due": due, "virtual_builder_name": page}
        await self.master.data.updates.addBuildset(
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
