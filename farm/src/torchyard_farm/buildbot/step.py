"""The one step of every build: `torchyard run` of one job."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
from buildbot.process import remotecommand, remotetransfer
from buildbot.process.buildstep import BuildStep, ShellMixin
from buildbot.process.results import CANCELLED, EXCEPTION, FAILURE, RETRY, SUCCESS
from torchyard.model.order import short_name
from twisted.internet import defer, error

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

_COMMAND = ("torchyard", "run", "--work", "../../work")
"""Runs in a directory for each agent and builder; the work of a machine is in one for all."""

_VERDICT = "verdict"
"""The property of a build that tells how it ended; one that the master's death ended has none."""


class RunJob(ShellMixin, BuildStep):
    """Sends the order of a job to the worker, and runs it there."""

    name = "run"
    haltOnFailure = True
    flunkOnFailure = True

    def __init__(self, folder: str, attempts: int) -> None:
        self._plans = Plans(Path(folder))
        self._attempts = attempts
        options = {"workdir": ".", "timeout": None, "logEnviron": False, "interruptSignal": "TERM"}
        super().__init__(**self.setupShellMixin(options))

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
        return _RESULTS[verdict]

    @defer.inlineCallbacks
    def _run_there(self) -> Generator[Any, Any, int | None]:
        plan = self._plans.read(self.getProperty("plan"))
        job = self.getProperty("job")
        task = plan.task(job)
        name = f"{short_name(task.stage, task.fingerprint)}.order.json"
        yield self._send(msgspec.json.encode(plan.order(job)), name)
        command = yield self.makeRemoteShellCommand(
            command=[*_COMMAND, "--order", name, "--store", plan.store]
        )
        yield self.runCommand(command)
        code: int | None = command.rc
        return code

    def _send(self, data: bytes, name: str) -> Any:
        reader = remotetransfer.StringFileReader(data)
        order = {"workerdest": name, "reader": reader, "blocksize": _BLOCK}
        order |= {"maxsize": None, "workdir": self.workdir, "mode": None}
        return self.runCommand(remotecommand.RemoteCommand("downloadFile", order))

    @defer.inlineCallbacks
    def _failures(self) -> Generator[Any, Any, int]:
        """How often this job was tried before and failed by no fault of its own."""
        count = 0
        request = self.build.requests[0].id
        for build in (yield self.master.data.get(("buildrequests", request, "builds"))):
            if build["buildid"] != self.build.buildid:
                told = yield self.master.data.get(("builds", build["buildid"], "properties"))
                count += told.get(_VERDICT, ("",))[0] == Verdict.AGAIN
        return count
