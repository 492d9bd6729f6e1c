"""Offers a job that was tried before to the right machines, and not too soon.

Nor before its inputs are there again, if they are being made once more.
"""

from collections.abc import Generator
from typing import Any

from twisted.internet import defer

from torchyard.errors import TorchyardError
from torchyard_farm.master.builds import MACHINE
from torchyard_farm.master.db.attempts_db import AttemptHistory
from torchyard_farm.master.dispatch.wakeups import Wakeups
from torchyard_farm.master.peers.peers import find_plan
from torchyard_farm.master.plans.submit import unfinished_inputs
from torchyard_farm.scheduling.attempts import AttemptVerdict, RetryLimits
from torchyard_farm.scheduling.plans import Plans
from torchyard_farm.scheduling.retry_delay import Offer, retry_delay


class RetryPolicy:
    """What Buildbot asks before it starts a build: `canStartBuild` of all builders."""

    def __init__(self, limits: RetryLimits, tries: AttemptHistory, plans: Plans) -> None:
        self._limits = limits
        self._tries = tries
        self._plans = plans
        self._started: float | None = None
        self._reminders = Wakeups()

    def begin(self) -> None:
        """Begin the time of grace, now or anew: another master is gone, and its workers come."""
        self._started = None
        self._tries.forget_all()

    @defer.inlineCallbacks
    def __call__(
        self, builder: Any, worker_for_builder: Any, request: Any
    ) -> Generator[Any, Any, bool]:
        machine = _machine(worker_for_builder)  # which may be lost while something is read
        now = builder.master.reactor.seconds()
        if self._started is None:
            self._started = now
        tries = yield self._tries.known(builder.master, request.id)
        there = {_machine(other) for other in builder.workers}
        scene = Offer(there, now, now - self._started)
        wait = retry_delay(machine, tries, scene, self._limits)
        if not wait and tries and tries[-1].verdict is AttemptVerdict.AGAIN:
            is_lacking = yield self._is_lacking(builder.master, request.properties)
            wait = self._limits.pause if is_lacking else wait
        if wait:
            self._reminders.ask_again(builder, now + wait)
        return not wait

    @defer.inlineCallbacks
    def _is_lacking(self, master: Any, told: Any) -> Generator[Any, Any, bool]:
        """Whether something that a job is made from is being made again."""
        try:
            plan = yield find_plan(master, self._plans, told.getProperty("plan"))
        except TorchyardError:  # its step will tell
            return False
        return bool((yield unfinished_inputs(master, plan, told.getProperty("job"))))


def _machine(worker_for_builder: Any) -> str:
    return worker_for_builder.worker.properties.getProperty(MACHINE)
