"""Buildbot without torchyard: independent builds of one command.

It is configured as well as possible, so that the comparison is with Buildbot at its best: no more
builds are pending than keep all workers busy, as a long queue makes it slow.
"""

from pathlib import Path

from buildbot.plugins import steps, util, worker
from buildbot.process.properties import Properties
from buildbot.schedulers.base import ReconfigurableBaseScheduler
from twisted.internet import defer

from torchyard_farm.master.db.connection import database_config
from torchyard_farm.settings.farm import load_farm
from torchyard_farm.settings.layout import read_secret
from torchyard_farm.twisted_tools import async_to_deferred

BUILDER = "bare"
_STAMP = {"codebase": "", "repository": "", "branch": None, "revision": None, "project": ""}


def configure(folder: str, jobs: int, ahead: int, command: list[str]) -> dict[str, object]:
    """Return a `BuildmasterConfig` with the database, ports and workers of a farm."""
    here = Path(folder)
    farm = load_farm(here)
    agents = [(name, machine.name) for machine in farm.machines for name in machine.worker_names]
    step = steps.ShellCommand(
        command=[util.Interpolate(word) for word in command],
        logEnviron=False,
        timeout=None,
        workdir=".",
    )
    return {
        "db": database_config(farm.database),
        "protocols": {"pb": {"port": farm.listen.endpoint}},
        "www": {"port": farm.web.endpoint},
        "buildbotURL": f"http://{farm.web.host}:{farm.web.port}/",
        "buildbotNetUsageData": None,
        "collapseRequests": False,
        "prioritizeBuilders": lambda _master, builders: builders,
        "workers": [
            worker.Worker(name, read_secret(here, machine), max_builds=1)
            for name, machine in agents
        ],
        "builders": [
            util.BuilderConfig(
                name=BUILDER,
                workernames=[name for name, _ in agents],
                factory=util.BuildFactory([step]),
            )
        ],
        "schedulers": [Feed(name="feed", builderNames=[BUILDER], jobs=jobs, ahead=ahead)],
    }


class Feed(ReconfigurableBaseScheduler):
    """Keeps some builds pending until all were submitted."""

    def checkConfig(self, builderNames: list[str], jobs: int, ahead: int) -> None:
        super().checkConfig(builderNames=builderNames)

    @async_to_deferred
    async def reconfigService(self, builderNames: list[str], jobs: int, ahead: int) -> None:
        await super().reconfigService(builderNames=builderNames)
        self._jobs, self._ahead = jobs, ahead

    @async_to_deferred
    async def activate(self) -> None:
        await super().activate()
        self._sent = 0
        await self.master.mq.startConsuming(self._hear, ("buildsets", None, "complete"))
        for _ in range(min(self._ahead, self._jobs)):
            await self._send()

    def _hear(self, _key: object, _buildset: object) -> defer.Deferred[None]:
        return self._send()

    @async_to_deferred
    async def _send(self) -> None:
        if self._sent >= self._jobs:
            return
        self._sent += 1
        await self.addBuildsetForSourceStamps(
            sourcestamps=[_STAMP],
            reason="bare",
            waited_for=False,
            properties=Properties(job=self._sent - 1),
        )
