"""Find the provider's jobs that a change of the repository affects."""

from collections.abc import Collection, Mapping

from torchyard.ci.explain import JobIndex
from torchyard.ci.pipeline import Pipeline
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan

WantedParts = Mapping[str, tuple[str, ...]]
"""The parts to run of each provider's job; empty for a job without a matrix."""


def wanted_parts(pipeline: Pipeline, plan: Plan, affected: Collection[int]) -> WantedParts:
    """Return the jobs that run affected jobs of the plan, or their inputs."""
    needed = {number for number in affected if plan.jobs[number].stage is not Stage.PUBLISH}
    for job in reversed(plan.jobs):
        if job.number in needed:
            needed.update(job.inputs)
    index = JobIndex(pipeline)
    found: dict[str, set[str]] = {}
    for number in needed:
        for placed, part in index.find(plan.jobs[number]):
            found.setdefault(placed.name, set()).add(part)
    return {
        job.name: tuple(part for part in job.parts if part in found[job.name])
        for job in pipeline.jobs
        if job.name in found
    }
