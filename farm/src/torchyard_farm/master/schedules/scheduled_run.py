"""The one step of a scheduled run: a command of `torchyard farm` on the master's machine."""

import sys

from buildbot.process.buildstep import BuildStep, ShellMixin
from buildbot.process.results import FAILURE, RETRY, SUCCESS

from torchyard_farm.twisted_tools import async_to_deferred

_TIME_LIMIT = 2 * 3600
"""Seconds: a command that hangs must not block tomorrow's run."""

_OPTIONS = {"workdir": ".", "timeout": None, "maxTime": _TIME_LIMIT, "logEnviron": False}


class ScheduledRun(ShellMixin, BuildStep):
    """Makes a plan in a process of its own, so that the master is not blocked."""

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
