"""Puts jobs into Buildbot's queue, also once more.

Each is a buildset with PLAN/NUMBER as its external name. When the input of a job is gone from the
store, what makes it is sent again, and the job waits for that: nothing has to be remembered for it.
"""

from collections.abc import Generator, Iterator
from typing import Any

from twisted.internet import defer

from torchyard_farm.master.db.plan_tables import read_unfinished
from torchyard_farm.scheduling.locality import typical_size
from torchyard_farm.scheduling.plans import FarmPlan

NAME = "plans"
"""What Buildbot calls the scheduler of plans."""

_TURN = defer.DeferredLock()

Steps = Generator[Any, Any, None]


class JobSubmitter:
    """Sends jobs, and remembers what is the same for many of them."""

    def __init__(self) -> None:
        self._builders: dict[str, int] = {}
        self._stamp: int | None = None

    @defer.inlineCallbacks
    def send(self, master: Any, plan: FarmPlan, job: int) -> Steps:
        planned = plan.jobs[job]
        if planned.kind not in self._builders:
            find = master.data.updates.findBuilderId
            self._builders[planned.kind] = yield find(planned.kind)
        if self._stamp is None:  # Buildbot wants one, though nothing is checked out
            stamp = {"codebase": "", "project": "", "repository": ""}
            self._stamp = yield master.db.sourcestamps.findSourceStampId(**stamp)
        yield master.data.updates.addBuildset(
            waited_for=False,
            scheduler=NAME,
            reason=f"plan {plan.id}",
            sourcestamps=[self._stamp],
            properties={name: (value, "plan") for name, value in _properties(plan, job)},
            builderids=[self._builders[planned.kind]],
            external_idstring=_name(plan, job),
            priority=planned.urgency,
        )


def resubmit_inputs(master: Any, plan: FarmPlan, job: int) -> Any:
    """Send all that a job comes after once more; what the store still has takes a moment only.

    Many jobs may find at once that the same is gone: it is sent for the first of them.
    """
    return _TURN.run(_send_inputs, master, plan, job)


@defer.inlineCallbacks
def _send_inputs(master: Any, plan: FarmPlan, job: int) -> Steps:
    sender = JobSubmitter()
    out = yield unfinished_inputs(master, plan, job)
    for other in plan.jobs[job].after:
        if other not in out:
            yield sender.send(master, plan, other)


@defer.inlineCallbacks
def unfinished_inputs(master: Any, plan: FarmPlan, job: int) -> Generator[Any, Any, set[int]]:
    """Those that a job comes after, and that wait or run."""
    names = {_name(plan, other): other for other in plan.jobs[job].after}
    out = yield master.db.pool.do(read_unfinished, master.db.model, names)
    return {names[name] for name in out}


def _name(plan: FarmPlan, job: int) -> str:
    return f"{plan.id}/{job}"


def _properties(plan: FarmPlan, job: int) -> Iterator[tuple[str, Any]]:
    task = plan.task(job)
    yield "plan", plan.id
    yield "job", job
    yield "task", task.id
    yield "fingerprint", task.fingerprint
    if task.needs.memory:
        yield "memory", task.needs.memory
    if task.needs.disk:
        yield "disk", task.needs.disk
    if large := plan.jobs[job].large:
        inputs = (plan.tasks[number] for number in large)
        yield "inputs", {other.fingerprint: typical_size(other) for other in inputs}
    yield "virtual_builder_name", plan.page(job)
