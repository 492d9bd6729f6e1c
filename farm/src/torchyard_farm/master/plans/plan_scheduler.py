"""Submit the jobs of plans to Buildbot's queue when their inputs exist.

The state is in the plans' files, and in Buildbot's table of buildsets, which has a row for
each submitted job, with PLAN/NUMBER as its external name. Everything else is derived from these
when the master starts, so it may be killed at any moment.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TypedDict

from buildbot.mq.base import QueueRef
from buildbot.schedulers.base import ReconfigurableBaseScheduler
from twisted.internet import defer
from twisted.python import log
from twisted.python.failure import Failure

from torchyard.errors import TorchyardError
from torchyard_farm.master.db.plan_tables import GOOD, read_job_statuses, read_open_requests
from torchyard_farm.master.peers.peers import may_submit_jobs, share_plan
from torchyard_farm.master.plans.submit import JobSubmitter
from torchyard_farm.master.polling import Polling
from torchyard_farm.scheduling.plan_tracker import PlanTracker
from torchyard_farm.scheduling.plans import FarmPlan, Plans
from torchyard_farm.twisted_tools import async_to_deferred, delay, in_background

_INTERVAL = 1.0
"""Seconds between two checks for plans that were submitted or cancelled."""

_CONCURRENT = 8
"""Jobs written to the tables at once: the database may take long for each."""

_PAUSE = 5.0
"""Seconds after an error, such as of the database, before everything is read again."""


class CompleteBuildset(TypedDict):
    """The used part of Buildbot's announcement of a complete buildset."""

    external_idstring: str | None
    results: int


class PlanScheduler(Polling, ReconfigurableBaseScheduler):
    """A single pump does everything in sequence, so no locks are needed."""

    POLL_INTERVAL_SEC = 5
    """Seconds between attempts to take over the plans of a dead master."""

    def __init__(
        self, name: str, builderNames: list[str], windows: dict[str, int], folder: str
    ) -> None:
        super().__init__(name=name, builderNames=builderNames, windows=windows, folder=folder)
        self._consumer: QueueRef | None = None
        self._is_pumping = False
        self._windows: dict[str, int] = {}
        self._reset()

    def checkConfig(self, builderNames: list[str], windows: dict[str, int], folder: str) -> None:
        super().checkConfig(builderNames=builderNames)

    @async_to_deferred
    async def reconfigService(
        self, builderNames: list[str], windows: dict[str, int], folder: str
    ) -> None:
        await super().reconfigService(builderNames=builderNames)
        self._windows = windows
        self._plans = Plans(Path(folder))
        self._reset()

    def _reset(self) -> None:
        """Forget everything; the next pump reads it again."""
        self._tracker = PlanTracker(self._windows)
        self._ended: deque[tuple[str, int, bool]] = deque()
        self._unreadable: set[str] = set()
        self._submitter = JobSubmitter()
        self._cancelling: dict[str, set[int]] = {}

    @async_to_deferred
    async def activate(self) -> None:
        await super().activate()
        if self.enabled:
            self._reset()
            self._consumer = await self.master.mq.startConsuming(
                self._on_complete, ("buildsets", None, "complete")
            )
            self.start_polling(self._start_pump, _INTERVAL, now=True)

    @async_to_deferred
    async def deactivate(self) -> None:
        await super().deactivate()
        self.stop_polling()
        if self._consumer is not None:
            await defer.maybeDeferred(self._consumer.stopConsuming)
            self._consumer = None

    def _on_complete(self, _key: object, buildset: CompleteBuildset) -> None:
        """Process a complete buildset: a job's first, or a rebuild, which has the same name."""
        plan, _, number = (buildset["external_idstring"] or "").rpartition("/")
        if plan and number.isdecimal():
            self._ended.append((plan, int(number), buildset["results"] in GOOD))
            self._start_pump()

    def _start_pump(self) -> None:
        if not self._is_pumping and self._may_submit():
            self._is_pumping = True
            in_background(self._pump().addErrback(self._failed).addBoth(self._stop_pump))

    def _may_submit(self) -> bool:
        return self.is_polling and may_submit_jobs(self.master)

    def _stop_pump(self, _: object) -> None:
        self._is_pumping = False

    def _failed(self, why: Failure) -> defer.Deferred[None]:
        log.err(why, "the farm's plans are read again")
        self._reset()
        return delay(self.master.reactor, _PAUSE, lambda: None)

    @async_to_deferred
    async def _pump(self) -> None:
        """Do all pending work."""
        for name in self._plans.cancelled():
            await self._cancel(name)
        for name in self._plans.open():
            if not (name in self._tracker or name in self._unreadable or name in self._cancelling):
                await self._load(name)
        self._take_ended()
        while self._may_submit() and (
            jobs := list(islice(iter(self._tracker.next, None), _CONCURRENT))
        ):
            await self._submit_all(jobs)
            self._take_ended()

    def _take_ended(self) -> None:
        while self._ended:
            name, job, good = self._ended.popleft()
            if name not in self._tracker:
                continue
            self._tracker.end(name, job, good=good)
            self._archive(name)

    def _archive(self, name: str) -> None:
        """Archive a plan if it is over."""
        if self._tracker.is_over(name):
            counts = self._tracker.counts(name)
            log.msg(f"plan {name} is over: {counts.good} of {counts.jobs} jobs succeeded")
            self._tracker.drop(name)
            self._plans.end(name)

    async def _load(self, name: str) -> None:
        try:
            plan = self._plans.read(name)
        except TorchyardError as error:
            log.msg(f"plan {name} is skipped: {error}")
            self._unreadable.add(name)
            return
        await share_plan(self.master, self._plans, name)
        tracker = self._tracker
        statuses, torn = await self.master.db.pool.do(
            read_job_statuses, self.master.db.model, plan.id
        )
        if tracker is not self._tracker:  # it was reset, so jobs that ended meanwhile are unknown
            return
        self._tracker.add(plan, statuses)
        for buildset in torn:
            await self.master.data.updates.maybeBuildsetComplete(buildset)
        counts = self._tracker.counts(plan.id)
        log.msg(f"plan {plan.id}: {counts.jobs} jobs, {counts.good} done, {counts.out} submitted")
        self._archive(plan.id)

    @async_to_deferred
    async def _submit_all(self, jobs: Iterable[tuple[FarmPlan, int]]) -> None:
        """Submit jobs. If one fails, await the others before the tables are read again."""
        waiting = [self._submit(*job) for job in jobs]
        submitted = await defer.DeferredList(waiting, consumeErrors=True)
        results: Sequence[tuple[bool, object]] = submitted
        for is_submitted, result in results:
            if not is_submitted and isinstance(result, Failure):
                result.raiseException()

    def _submit(self, plan: FarmPlan, job: int) -> defer.Deferred[None]:
        return self._submitter.submit(self.master, plan, job)

    async def _cancel(self, name: str) -> None:
        """Cancel all jobs of a plan, and archive it when they have ended.

        A running job is cancelled once. If its worker is lost meanwhile, Buildbot puts it back into
        its queue, where the next pump finds it.
        """
        self._tracker.drop(name)
        cancelled = self._cancelling.setdefault(name, set())
        requests = await self.master.db.pool.do(read_open_requests, self.master.db.model, name)
        for request, is_running in requests:
            if not is_running or request not in cancelled:
                cancelled.add(request)
                await self.master.data.control(
                    "cancel", {"reason": "its plan was cancelled"}, ("buildrequests", str(request))
                )
        if not requests:
            self._cancelling.pop(name, None)
            self._plans.end(name)
