"""Job specifications, which can be run without the plan they come from."""

from torchyard.model.job_spec import JobSpec, Task
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Job, Plan


def make_job_spec(plan: Plan, job: Job) -> JobSpec:
    """Return the specification of a job and of all its inputs.

    A publish job's has only the job itself, which names its inputs in the store.
    """
    jobs = [job] if job.stage is Stage.PUBLISH else plan.with_inputs([job.number])
    return JobSpec(
        tasks=tuple(make_task(plan, needed) for needed in jobs),
        sandbox=plan.config.sandbox,
    )


def make_task(plan: Plan, job: Job) -> Task:
    recipe = plan.config.project.recipe
    return Task(
        id=job.identifier,
        stage=job.stage,
        stage_revision=recipe.revision(job.stage),
        scope=job.path,
        recipe=recipe.name,
        fingerprint=job.fingerprint,
        inputs=tuple(plan.jobs[number].fingerprint for number in job.inputs),
        settings=job.settings.values,
        needs=job.settings.needs,
        source=plan.config.source if job.stage is Stage.SOURCE else None,
        compilers=_compilers(plan, job),
    )


def _compilers(plan: Plan, job: Job) -> dict[str, str]:
    """Return which host compilers a toolkit accepts, if the file has a row for it."""
    config = plan.config
    if job.stage is not config.project.recipe.compiling:
        return {}
    _, compute, *_ = job.scope
    is_own = config.row_origin("compute", compute) is not None
    return config.tables.compute[compute].compilers if is_own else {}
