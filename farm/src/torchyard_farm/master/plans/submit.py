"""Puts jobs into Buildbot's queue, for the first time or again.

Each is a buildset with PLAN/NUMBER as its external name. When an input of a job is missing from the
store, the job that makes it is submitted again, and the first job waits for that.
"""

from collections.abc import Iterator

from buildbot.master import BuildMaster
from twisted.internet import defer

from torchyard_farm.master.db.plan_tables import read_unfinished
from torchyard_farm.scheduling.locality import typical_size
from torchyard_farm.scheduling.plans import FarmPlan
from torchyard_farm.twisted_tools import async_to_deferred

NAME = "plans"
"""Buildbot's name of the scheduler of plans."""

_LOCK = defer.DeferredLock()


class JobSubmitter:
    """Submits jobs, and caches their common data."""

    def __init__(self) -> None:
        self._builders: dict[str, int] = {}
        self._stamp: int | None = None

    @async_to_deferred
    async def submit(self, master: BuildMaster, plan: FarmPlan, job: int) -> None:
        planned = plan.jobs[job]
        if planned.kind not in self._builders:
            find = master.data.updates.findBuilderId
            self._builders[planned.kind] = await find(planned.kind)
        if self._stamp is None:  # Buildbot requires a source stamp, even without a checkout
            self._stamp = await master.db.sourcestamps.findSourceStampId(
                codebase="", project="", repository=""
            )
        await master.data.updates.addBuildset(
            waited_for=False,
            scheduler=NAME,
            reason=f"plan {plan.id}",
            sourcestamps=[self._stamp],
            properties={name: (value, "plan") for name, value in _properties(plan, job)},
            builderids=[self._builders[planned.kind]],
            external_idstring=_name(plan, job),
            priority=planned.urgency,
        )


def resubmit_inputs(master: BuildMaster, plan: FarmPlan, job: int) -> defer.Deferred[None]:
    """Submit all direct inputs of a job again; those still in the store take only a moment.

    Many jobs may find the same input missing at once: it is submitted only for the first.
    """
    return _LOCK.run(_resubmit_inputs, master, plan, job)


@async_to_deferred
async def _resubmit_inputs(master: BuildMaster, plan: FarmPlan, job: int) -> None:
    submitter = JobSubmitter()
    unfinished = await unfinished_inputs(master, plan, job)
    for other in plan.jobs[job].after:
        if other not in unfinished:
            await submitter.submit(master, plan, other)


async def unfinished_inputs(master: BuildMaster, plan: FarmPlan, job: int) -> set[int]:
    """Return the direct inputs of a job that are pending or running."""
    names = {_name(plan, other): other for other in plan.jobs[job].after}
    unfinished = await master.db.pool.do(read_unfinished, master.db.model, names)
    return {names[name] for name in unfinished}


def _name(plan: FarmPlan, job: int) -> str:
    return f"{plan.id}/{job}"


def _properties(plan: FarmPlan, job: int) -> Iterator[tuple[str, object]]:
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
