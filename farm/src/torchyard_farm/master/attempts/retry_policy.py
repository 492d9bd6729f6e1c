"""Offer a job that was attempted before to the right machines, but not too soon.

If its inputs are being rebuilt, it is offered when they are finished.
"""

from buildbot.master import BuildMaster
from buildbot.process.builder import Builder
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.properties import Properties
from buildbot.process.workerforbuilder import AbstractWorkerForBuilder

from torchyard.errors import TorchyardError
from torchyard_farm.master.builds import MACHINE
from torchyard_farm.master.db.attempts_db import AttemptHistory
from torchyard_farm.master.dispatch.wakeups import Wakeups
from torchyard_farm.master.peers.plan_sync import find_plan
from torchyard_farm.master.plans.submit import unfinished_inputs
from torchyard_farm.scheduling.attempts import AttemptVerdict, RetryLimits
from torchyard_farm.scheduling.plans import Plans
from torchyard_farm.scheduling.retry_delay import JobOffer, retry_delay
from torchyard_farm.twisted_tools import async_to_deferred


class RetryPolicy:
    """The `canStartBuild` of all builders, which Buildbot calls before it starts a build."""

    def __init__(self, limits: RetryLimits, attempts: AttemptHistory, plans: Plans) -> None:
        self._limits = limits
        self._attempts = attempts
        self._plans = plans
        self._started: float | None = None
        self._wakeups = Wakeups()

    def restart_grace(self) -> None:
        """Restart the grace period: another master is gone, and its workers will connect."""
        self._started = None
        self._attempts.forget_all()

    @async_to_deferred
    async def __call__(
        self, builder: Builder, worker_for_builder: AbstractWorkerForBuilder, request: BuildRequest
    ) -> bool:
        machine = _machine(worker_for_builder)  # read first: the worker may be lost meanwhile
        now = builder.master.reactor.seconds()
        if self._started is None:
            self._started = now
        attempts = await self._attempts.cached(builder.master, request.id)
        able = {_machine(other) for other in builder.workers}
        offer = JobOffer(able, now, now - self._started)
        wait = retry_delay(machine, attempts, offer, self._limits)
        if not wait and attempts and attempts[-1].verdict is AttemptVerdict.AGAIN:
            is_lacking = await self._lacks_inputs(builder.master, request.properties)
            wait = self._limits.pause if is_lacking else wait
        if wait:
            self._wakeups.schedule(builder, now + wait)
        return not wait

    async def _lacks_inputs(self, master: BuildMaster, properties: Properties) -> bool:
        """Return whether an input of a job is being rebuilt."""
        try:
            plan = await find_plan(master, self._plans, properties.getProperty("plan"))
        except TorchyardError:  # the job's own step reports it
            return False
        return bool(await unfinished_inputs(master, plan, properties.getProperty("job")))


def _machine(worker_for_builder: AbstractWorkerForBuilder) -> str:
    assert worker_for_builder.worker is not None  # noqa: S101 - Buildbot lists connected ones
    name: str = worker_for_builder.worker.properties.getProperty(MACHINE)
    return name
