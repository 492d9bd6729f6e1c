"""Sends the jobs of plans to Buildbot's queue as what they need is there.

What is true is in two places, the plans' files and Buildbot's table of buildsets, which has a row
for each job that was sent, with PLAN/NUMBER as its external name. All else is made from these
when the master starts: so it may be killed at any moment.
"""

from collections import deque
from collections.abc import Generator, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from buildbot.schedulers.base import ReconfigurableBaseScheduler
from twisted.internet import defer, task
from twisted.python import log

from torchyard.errors import TorchyardError
from torchyard_farm.master.db.plan_tables import GOOD, read_job_statuses, read_open_requests
from torchyard_farm.master.peers.peers import may_submit_jobs, share_plan
from torchyard_farm.master.plans.submit import JobSubmitter
from torchyard_farm.master.polling import Polling
from torchyard_farm.scheduling.plan_tracker import PlanTracker
from torchyard_farm.scheduling.plans import FarmPlan, Plans

_LOOK = 1.0
"""Seconds between two looks at whether a plan was handed in, or cancelled."""

_AT_ONCE = 8
"""Jobs that are written to the tables at one time: the database may take long for each."""

_PAUSE = 5.0
"""Seconds before everything is read again after something failed, such as the database."""

Steps = Generator[Any, Any, None]


class PlanScheduler(Polling, ReconfigurableBaseScheduler):
    """One pump does everything, one thing after the other: there are no locks to wait for."""

    POLL_INTERVAL_SEC = 5
    """How often a master tries to take the plans over from another one that is gone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._consumer: Any = None
        self._pumping = False
        self._begin_anew()

    def checkConfig(self, builderNames: list[str], windows: dict[str, int], folder: str) -> None:
        super().checkConfig(builderNames=builderNames)

    @defer.inlineCallbacks
    def reconfigService(
        self, builderNames: list[str], windows: dict[str, int], folder: str
    ) -> Steps:
        yield super().reconfigService(builderNames=builderNames)
        self._windows = windows
        self._plans = Plans(Path(folder))
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget everything; the next look reads it again."""
        self._board = PlanTracker(getattr(self, "_windows", {}))
        self._ended: deque[tuple[str, int, bool]] = deque()
        self._refused: set[str] = set()
        self._sender = JobSubmitter()
        self._cancelling: dict[str, set[int]] = {}

    @defer.inlineCallbacks
    def activate(self) -> Steps:
        yield super().activate()
        if self.enabled:
            self._begin_anew()
            self._consumer = yield self.master.mq.startConsuming(
                self._hear, ("buildsets", None, "complete")
            )
            self.repeat(self._kick, _LOOK, now=True)

    @defer.inlineCallbacks
    def deactivate(self) -> Steps:
        yield super().deactivate()
        self.cease()
        if self._consumer is not None:
            yield self._consumer.stopConsuming()
            self._consumer = None

    def _hear(self, _key: object, told: dict[str, Any]) -> None:
        """A buildset is complete: one that was sent, or a rebuild of it, with the same name."""
        plan, _, number = (told["external_idstring"] or "").rpartition("/")
        if plan and number.isdecimal():
            self._ended.append((plan, int(number), told["results"] in GOOD))
            self._kick()

    def _kick(self) -> None:
        if not self._pumping and self._may_send():
            self._pumping = True
            self._pump().addErrback(self._failed).addBoth(self._rest)

    def _may_send(self) -> bool:
        return self.is_looping and may_submit_jobs(self.master)

    def _rest(self, _: object) -> None:
        self._pumping = False

    def _failed(self, why: Any) -> Any:
        log.err(why, "the farm's plans are read again")
        self._begin_anew()
        return task.deferLater(self.master.reactor, _PAUSE, lambda: None)

    @defer.inlineCallbacks
    def _pump(self) -> Steps:
        """Do all that can be done now."""
        for name in self._plans.cancelled():
            yield self._cancel(name)
        for name in self._plans.open():
            if not (name in self._board or name in self._refused or name in self._cancelling):
                yield self._load(name)
        self._take_ended()
        while self._may_send() and (jobs := list(islice(iter(self._board.next, None), _AT_ONCE))):
            yield self._send_all(jobs)
            self._take_ended()

    def _take_ended(self) -> None:
        while self._ended:
            name, job, good = self._ended.popleft()
            if name not in self._board:
                continue
            self._board.end(name, job, good=good)
            self._put_away(name)

    def _put_away(self, name: str) -> None:
        """End a plan that is over."""
        if self._board.is_over(name):
            tally = self._board.tally(name)
            log.msg(f"plan {name} is done: {tally.good} of {tally.jobs} jobs ended well")
            self._board.drop(name)
            self._plans.end(name)

    @defer.inlineCallbacks
    def _load(self, name: str) -> Steps:
        try:
            plan = self._plans.read(name)
        except TorchyardError as error:
            log.msg(f"plan {name} is passed over: {error}")
            self._refused.add(name)
            return
        yield share_plan(self.master, self._plans, name)
        board = self._board
        told, torn = yield self.master.db.pool.do(read_job_statuses, self.master.db.model, plan.id)
        if board is not self._board:  # what ended since it was read is forgotten
            return
        self._board.add(plan, told)
        for buildset in torn:
            yield self.master.data.updates.maybeBuildsetComplete(buildset)
        tally = self._board.tally(plan.id)
        log.msg(f"plan {plan.id}: {tally.jobs} jobs, {tally.good} done, {tally.out} out")
        self._put_away(plan.id)

    @defer.inlineCallbacks
    def _send_all(self, jobs: Iterable[tuple[FarmPlan, int]]) -> Steps:
        """Send jobs; if one fails, the others are waited for: the tables are read again then."""
        sent = yield defer.DeferredList([self._send(*job) for job in jobs], consumeErrors=True)
        for is_sent, why in sent:
            if not is_sent:
                why.raiseException()

    def _send(self, plan: FarmPlan, job: int) -> Any:
        return self._sender.send(self.master, plan, job)

    @defer.inlineCallbacks
    def _cancel(self, name: str) -> Steps:
        """End all that a plan has out, and put it away when that is over.

        What runs is told once to end; if its worker is lost meanwhile, Buildbot puts it back into
        its queue, where it is found at the next look.
        """
        self._board.drop(name)
        told = self._cancelling.setdefault(name, set())
        open_requests = yield self.master.db.pool.do(read_open_requests, self.master.db.model, name)
        for request, is_running in open_requests:
            if not is_running or request not in told:
                told.add(request)
                yield self.master.data.control(
                    "cancel", {"reason": "its plan was cancelled"}, ("buildrequests", str(request))
                )
        if not open_requests:
            self._cancelling.pop(name, None)
            self._plans.end(name)
