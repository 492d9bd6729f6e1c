"""The one step of every build: `torchyard run` of one job."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
from buildbot.process import remotecommand, remotetransfer
from buildbot.process.buildstep import (
    BuildStep,
    ShellMixin,
    get_factory_from_step_or_factory,
)
from buildbot.process.results import CANCELLED, EXCEPTION, FAILURE, RETRY, SUCCESS
from twisted.internet import defer, error

from torchyard.model.order import ORDER
from torchyard_farm.attempts import Verdict, is_given_up, judge
from torchyard_farm.plans import Plans

_RESULTS = {
    Verdict.GOOD: SUCCESS,
    Verdict.BAD: FAILURE,
    Verdict.AGAIN: RETRY,
    Verdict.LATER: RETRY,
    Verdict.ENDED: CANCELLED,
}
_BLOCK = 1 << 16

_JOB = ("--order", ORDER, "--work", "../../work")
"""Commands run in a directory for each agent and builder, which has one job at a time; the work of
a machine is in one for all."""

_VERDICT = "verdict"
"""The property of a build that tells how it ended; one that the master's death ended has none."""


_OPTIONS = {"workdir": ".", "timeout": None, "logEnviron": False, "interruptSignal": "TERM"}


@defer.inlineCallbacks
def verdict_of(master: Any, build: int) -> Generator[Any, Any, str | None]:
    """How a build ended; None if the master was killed before it knew."""
    told = yield master.data.get(("builds", build, "properties"))
    return told.get(_VERDICT, (None,))[0]


class RunJob(ShellMixin, BuildStep):
    """Sends the order of a job to the worker, and follows it there.

    The job itself outlives the connection, the worker's agent and the master. Sent once more to
    the same machine it is found there; sent to another one, that waits for its result.
    """

    name = "run"
    haltOnFailure = True
    flunkOnFailure = True

    def __init__(self, folder: str, attempts: int) -> None:
        self._plans = Plans(Path(folder))
        self._attempts = attempts
        super().__init__(**self.setupShellMixin(_OPTIONS))

    @defer.inlineCallbacks
    def run(self) -> Generator[Any, Any, int]:
        failures = yield self._failures()
        if is_given_up(failures, self._attempts):
            self.descriptionDone = f"given up after {failures} attempts"
            return EXCEPTION
        try:
            code = yield self._run_there()
        except error.ConnectionLost:
            self.setProperty(_VERDICT, Verdict.AGAIN.value, "run")
            raise
        stopping = self.master.botmaster.shuttingDown
        verdict = judge(code, interrupted=bool(self.stopped), stopping=stopping)
        self.setProperty(_VERDICT, verdict.value, "run")
        if verdict is Verdict.ENDED:
            self.build.addStepsAfterCurrentStep([get_factory_from_step_or_factory(EndJob())])
        return _RESULTS[verdict]

    @defer.inlineCallbacks
    def _run_there(self) -> Generator[Any, Any, int | None]:
        plan = self._plans.read(self.getProperty("plan"))
        order = plan.order(self.getProperty("job"))
        if (yield self._send(msgspec.json.encode(order))):
            return None  # its disk is full, for example: another one may do better
        command = yield self.makeRemoteShellCommand(
            command=["torchyard", "run", "--detach", *_JOB, "--store", plan.store]
        )
        yield self.runCommand(command)
        code: int | None = command.rc
        return code

    @defer.inlineCallbacks
    def _send(self, data: bytes) -> Generator[Any, Any, int | None]:
        """Write an order where the worker's commands run, and return how that went."""
        reader = remotetransfer.StringFileReader(data)
        order = {"workerdest": ORDER, "reader": reader, "blocksize": _BLOCK}
        order |= {"maxsize": None, "workdir": self.workdir, "mode": None}
        command = remotecommand.RemoteCommand("downloadFile", order)
        yield self.runCommand(command)
        code: int | None = command.rc
        return code

    @defer.inlineCallbacks
    def _failures(self) -> Generator[Any, Any, int]:
        """How often this job was tried before and failed by no fault of its own."""
        count = 0
        request = self.build.requests[0].id
        for build in (yield self.master.data.get(("buildrequests", request, "builds"))):
            if build["buildid"] != self.build.buildid:
                verdict = yield verdict_of(self.master, build["buildid"])
                count += verdict == Verdict.AGAIN
        return count


class EndJob(ShellMixin, BuildStep):
    """Ends a job that somebody wanted to end: until then only who follows it was stopped."""

    name = "end"
    alwaysRun = True

    def __init__(self) -> None:
        super().__init__(**self.setupShellMixin(_OPTIONS))

    @defer.inlineCallbacks
    def run(self) -> Generator[Any, Any, int]:
        command = yield self.makeRemoteShellCommand(command=["torchyard", "cancel", *_JOB])
        yield self.runCommand(command)
        return command.results()
