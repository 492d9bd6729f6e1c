"""The one step of every build: `torchyard run` of one job."""

from pathlib import Path

import msgspec
from buildbot.process.buildstep import (
    BuildStep,
    get_factory_from_step_or_factory,
)
from buildbot.process.remotecommand import RemoteShellCommand
from buildbot.process.results import CANCELLED, FAILURE, RETRY, SUCCESS
from twisted.internet import defer
from twisted.python.failure import Failure

from torchyard.errors import MISSING
from torchyard_farm.master.db.attempts_db import VERDICT, AttemptHistory
from torchyard_farm.master.peers.plan_sync import find_plan
from torchyard_farm.master.plans.submit import resubmit_inputs
from torchyard_farm.scheduling.attempts import (
    FINAL_VERDICTS,
    AttemptRecord,
    AttemptVerdict,
    RetryLimits,
    explain_verdict,
    final_verdict,
    judge_exit,
)
from torchyard_farm.scheduling.job_request import (
    LOG,
    REQUEST,
    EndRequest,
    JobRequest,
    RunRequest,
    spec_blocks,
)
from torchyard_farm.scheduling.plans import FarmPlan, Plans, plan_url
from torchyard_farm.twisted_tools import CONNECTION_LOST, async_to_deferred
from torchyard_farm.web.job_log import JobLog

_LOG_LIMIT = 16 << 20
"""Characters of a job's log that the master keeps; the store has the whole log."""

_WORKDIR = "."


class RequestCommand(RemoteShellCommand):
    """Sends a request, of which the worker makes the command (`worker/commands.py`)."""

    def __init__(self, request: JobRequest) -> None:
        super().__init__(workdir=_WORKDIR, command=["torchyard", "run"], timeout=None)
        self.args[REQUEST] = msgspec.to_builtins(request, builtin_types=(tuple,))


class FollowCommand(RequestCommand):
    """Runs `torchyard run --json`, and writes its events to the log, rendered by a `JobLog`."""

    def __init__(self, job_log: JobLog, request: RunRequest) -> None:
        super().__init__(request)
        self._job_log = job_log
        self._room = _LOG_LIMIT

    async def add_stdout_lines(self, data: str, is_flushed: bool) -> None:  # noqa: FBT001 - Buildbot's
        before = self._job_log.activity
        lines = self._job_log.feed(data)
        if self._job_log.activity != before:
            self.step.updateSummary()
        if lines:
            await super().add_stdout_lines(lines, is_flushed)

    async def addToLog(self, logname: str, data: str) -> None:
        if self._room > 0:
            self._room -= len(data)
            cut = "" if self._room > 0 else "… the whole log is kept with the result\n"
            await super().addToLog(logname, data + cut)


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


class RunJob(BuildStep):
    """Sends the specification of a job to a worker, and follows the job there.

    The job itself outlives the connection, the worker process and the master. If it is sent to the
    same machine again, it is found there; another machine waits for its result.
    """

    name = "run"
    haltOnFailure = True
    flunkOnFailure = True

    def __init__(self, folder: str, limits: RetryLimits, attempts: AttemptHistory) -> None:
        self._plans = Plans(Path(folder))
        self._limits = limits
        self._attempts = attempts
        self._is_unwanted = False
        self._job_log = JobLog("")
        super().__init__(workdir=_WORKDIR)

    def interrupt(self, reason: str | Failure) -> defer.Deferred[None]:
        """Stop: a user requested it, the connection is lost, or the master shuts down."""
        if isinstance(reason, str) and not self.master.botmaster.shuttingDown:
            self._is_unwanted = True
        return super().interrupt(reason)

    @async_to_deferred
    async def run(self) -> int:
        request = self.build.requests[0].id
        attempts = await self._attempts.read(self.master, request)
        verdict = final_verdict(attempts, self._limits)
        if verdict is None:
            verdict = await self._attempt(attempts)
        if verdict is not AttemptVerdict.GOOD:  # each costs a query
            self.setProperty(VERDICT, verdict.value, "run")
            await self.addURL(
                "plan", plan_url(self.master.config.buildbotURL, self.getProperty("plan"))
            )
        if verdict in FINAL_VERDICTS:
            self.descriptionDone = explain_verdict(verdict, attempts)
        if _RESULTS[verdict] == RETRY or self.build.conn is None:
            self._attempts.remember(request, attempts)
        else:
            self._attempts.forget(request)
        return _RESULTS[verdict]

    async def _attempt(self, attempts: list[AttemptRecord]) -> AttemptVerdict:
        """Run the job, append the attempt to those before, and return the verdict."""
        verdict = await self._run_and_judge()
        now = self.master.reactor.seconds()
        attempts.append(AttemptRecord(self.getProperty("machine"), verdict, now))
        if verdict is AttemptVerdict.AGAIN:
            verdict = final_verdict(attempts, self._limits) or verdict
        if verdict is AttemptVerdict.AGAIN and self._job_log.reason == MISSING:
            await resubmit_inputs(self.master, await self._plan(), self.getProperty("job"))
        if verdict is AttemptVerdict.ENDED:
            self.build.addStepsAfterCurrentStep([get_factory_from_step_or_factory(EndJob())])
        return verdict

    async def _run_and_judge(self) -> AttemptVerdict:
        try:
            code = await self._run_remotely()
        except CONNECTION_LOST:
            code, lost = None, True
        else:
            lost = self.build.conn is None
        if code:
            self.setProperty("code", code, "run")
        stopping = self.master.botmaster.shuttingDown
        return judge_exit(
            code,
            reason=self._job_log.reason,
            lost=lost,
            unwanted=self._is_unwanted,
            stopping=stopping,
        )

    async def _plan(self) -> FarmPlan:
        return await find_plan(self.master, self._plans, self.getProperty("plan"))

    async def _run_remotely(self) -> int | None:
        """Run the job on the worker, and return its exit code."""
        plan = await self._plan()
        spec = plan.spec(self.getProperty("job"))
        self._job_log = JobLog(spec.task.id)
        request = RunRequest(
            spec=spec_blocks(msgspec.json.encode(spec).decode()),
            store=plan.store,
            copies=self.getProperty("copies") or "",
        )
        command = FollowCommand(self._job_log, request)
        command.useLog(await self.addLog("stdio"))
        command.useLogDelayed(LOG, lambda _: self.addLog(LOG), closeWhenFinished=True)
        await self.runCommand(command)
        return command.rc

    def getCurrentSummary(self) -> dict[str, str]:
        return {"step": self._job_log.activity or "starting"}

    def getResultSummary(self) -> dict[str, str]:
        if self._job_log.summary and not self.descriptionDone:
            return {"step": self._job_log.details, "build": self._job_log.headline}
        return super().getResultSummary()


class EndJob(BuildStep):
    """Ends a job that a user cancelled; so far only the process that follows it was stopped."""

    name = "end"
    alwaysRun = True

    @async_to_deferred
    async def run(self) -> int:
        command = RequestCommand(EndRequest())
        command.useLog(await self.addLog("stdio"))
        await self.runCommand(command)
        return command.results()
