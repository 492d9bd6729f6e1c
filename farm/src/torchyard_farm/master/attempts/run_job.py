"""The one step of every build: `torchyard run` of one job."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
from buildbot.process.buildstep import (
    BuildStep,
    ShellMixin,
    get_factory_from_step_or_factory,
)
from buildbot.process.results import CANCELLED, FAILURE, RETRY, SUCCESS
from twisted.internet import defer

from torchyard.errors import MISSING
from torchyard.model.job_spec import ORDER, short_name
from torchyard_farm.master.attempts.follow_command import LOG, FollowCommand
from torchyard_farm.master.db.attempts_db import VERDICT, AttemptHistory
from torchyard_farm.master.peers.peers import find_plan
from torchyard_farm.master.plans.submit import resubmit_inputs
from torchyard_farm.scheduling.attempts import (
    FINAL_VERDICTS,
    Attempt,
    AttemptVerdict,
    RetryLimits,
    explain_verdict,
    final_verdict,
    judge_exit,
)
from torchyard_farm.scheduling.plans import Plans, plan_url
from torchyard_farm.twisted_tools import CONNECTION_LOST
from torchyard_farm.web.job_log import JobLog

_RESULTS = {
    AttemptVerdict.GOOD: SUCCESS,
    AttemptVerdict.BAD: FAILURE,
    AttemptVerdict.AGAIN: RETRY,
    AttemptVerdict.LATER: RETRY,
    AttemptVerdict.LOST: RETRY,
    AttemptVerdict.ENDED: CANCELLED,
    AttemptVerdict.GIVEN_UP: FAILURE,
    AttemptVerdict.QUARANTINED: FAILURE,
}

_WORK = "../../work"
_JOB = ("--order", ORDER, "--work", _WORK)
"""Commands run in a directory for each agent and builder, which has one job at a time; the work of
a machine is in one for all."""

_OPTIONS = {
    "workdir": ".",
    "timeout": None,
    "logEnviron": False,
    "interruptSignal": "TERM",
    "env": {"COLUMNS": "1000"},  # a log is as wide as its page
}


class RunJob(BuildStep):
    """Sends the order of a job to the worker, and follows it there.

    The job itself outlives the connection, the worker's agent and the master. Sent once more to
    the same machine it is found there; sent to another one, that waits for its result.
    """

    name = "run"
    haltOnFailure = True
    flunkOnFailure = True

    def __init__(self, folder: str, limits: RetryLimits, tries: AttemptHistory) -> None:
        self._plans = Plans(Path(folder))
        self._limits = limits
        self._tries = tries
        self._is_unwanted = False
        self._story = JobLog("")
        super().__init__(workdir=_OPTIONS["workdir"])

    def interrupt(self, reason: Any) -> Any:
        """Stop: a person wants it, the connection is gone, or the master stops."""
        if isinstance(reason, str) and not self.master.botmaster.shuttingDown:
            self._is_unwanted = True
        return super().interrupt(reason)

    @defer.inlineCallbacks
    def run(self) -> Generator[Any, Any, int]:
        request = self.build.requests[0].id
        tries = yield self._tries.read(self.master, request)
        verdict = final_verdict(tries, self._limits)
        if verdict is None:
            verdict = yield self._try()
            now = self.master.reactor.seconds()
            tries.append(Attempt(self.getProperty("machine"), verdict, now))
            if verdict is AttemptVerdict.AGAIN:
                verdict = final_verdict(tries, self._limits) or verdict
            if verdict is AttemptVerdict.AGAIN and self._story.reason == MISSING:
                yield resubmit_inputs(self.master, (yield self._plan()), self.getProperty("job"))
            if verdict is AttemptVerdict.ENDED:
                self.build.addStepsAfterCurrentStep([get_factory_from_step_or_factory(EndJob())])
        if verdict is not AttemptVerdict.GOOD:  # each costs a question to the database
            self.setProperty(VERDICT, verdict.value, "run")
            yield self.addURL(
                "plan", plan_url(self.master.config.buildbotURL, self.getProperty("plan"))
            )
        if verdict in FINAL_VERDICTS:
            self.descriptionDone = explain_verdict(verdict, tries)
        if _RESULTS[verdict] == RETRY or self.build.conn is None:
            self._tries.remember(request, tries)
        else:
            self._tries.forget(request)
        return _RESULTS[verdict]

    @defer.inlineCallbacks
    def _try(self) -> Generator[Any, Any, AttemptVerdict]:
        try:
            code = yield self._run_there()
        except CONNECTION_LOST:
            code, lost = None, True
        else:
            lost = self.build.conn is None
        if code:
            self.setProperty("code", code, "run")
        stopping = self.master.botmaster.shuttingDown
        return judge_exit(
            code,
            reason=self._story.reason,
            lost=lost,
            unwanted=self._is_unwanted,
            stopping=stopping,
        )

    def _plan(self) -> Any:
        return find_plan(self.master, self._plans, self.getProperty("plan"))

    @defer.inlineCallbacks
    def _run_there(self) -> Generator[Any, Any, int | None]:
        plan = yield self._plan()
        order = plan.order(self.getProperty("job"))
        kept = self.getProperty("copies")
        copies = ("--copies", kept) if kept else ()
        self._story = JobLog(order.task.id)
        command = FollowCommand(
            self._story,
            msgspec.json.encode(order).decode(),
            command=[
                "torchyard",
                "run",
                "--detach",
                "--json",
                *_JOB,
                *copies,
                "--store",
                plan.store,
            ],
            logfiles={LOG: f"{_WORK}/{short_name(order.task.stage, order.task.fingerprint)}/log"},
            **_OPTIONS,
        )
        command.useLog((yield self.addLog("stdio")))
        command.useLogDelayed(LOG, lambda _: self.addLog(LOG), closeWhenFinished=True)
        yield self.runCommand(command)
        code: int | None = command.rc
        return code

    def getCurrentSummary(self) -> dict[str, str]:
        return {"step": self._story.now or "starting"}

    def getResultSummary(self) -> dict[str, str]:
        if self._story.summary and not self.descriptionDone:
            return {"step": self._story.telling, "build": self._story.headline}
        return super().getResultSummary()


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
