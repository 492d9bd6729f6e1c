"""The one step of what is done by the clock: a command of `torchyard farm`, beside the master."""

import sys
from collections.abc import Generator
from typing import Any

from buildbot.process.buildstep import BuildStep, ShellMixin
from buildbot.process.results import FAILURE, RETRY, SUCCESS
from twisted.internet import defer

_LONGEST = 2 * 3600
"""Seconds: whatever hangs must not keep what is due tomorrow from being done."""

_OPTIONS = {"workdir": ".", "timeout": None, "maxTime": _LONGEST, "logEnviron": False}


class ScheduledRun(ShellMixin, BuildStep):
    """Makes a plan in a process of its own, so that the master goes on meanwhile."""

    name = "plan"
    flunkOnFailure = True
    updateBuildSummaryPolicy = [SUCCESS, FAILURE]  # noqa: RUF012 - Buildbot wants it so

    def __init__(self, folder: str) -> None:
        self._folder = folder
        super().__init__(**self.setupShellMixin(_OPTIONS))

    @defer.inlineCallbacks
    def run(self) -> Generator[Any, Any, int]:
        verb, name, due = map(self.getProperty, ("verb", "occasion", "due"))
        argv = [sys.executable, "-m", "torchyard", "farm", verb, self._folder, name, "--due", due]
        command = yield self.makeRemoteShellCommand(
            command=argv, collectStdout=True, collectStderr=True
        )
        yield self.runCommand(command)
        if self.stopped and self.master.botmaster.shuttingDown:
            return RETRY
        said = (*command.stdout.splitlines(), *command.stderr.splitlines())  # a plan, or why none
        self.descriptionDone = next(filter(None, said), "nothing was said")
        self.setProperty("told", self.descriptionDone, self.name)
        return FAILURE if command.didFail() else SUCCESS
