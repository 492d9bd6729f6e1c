"""Which jobs of a plan are pending, and how urgent each is; nothing is run."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan

_USUAL = {
    Stage.SOURCE: 60,
    Stage.CORE: 3600,
    Stage.BINDINGS: 600,
    Stage.PACKAGE: 60,
    Stage.CHECK: 20,
    Stage.SMOKE: 30,
    Stage.PUBLISH: 60,
}
"""Assumed seconds of a job without a time in the file; only proportions matter."""


class JobGraph(NamedTuple):
    """A plan as numbers: each job's fingerprint, inputs and users."""

    fingerprints: list[str]
    inputs: list[tuple[int, ...]]
    users: list[list[int]]
    wanted: frozenset[int]


def job_graph(plan: Plan) -> JobGraph:
    """Return the graph of a plan; it wants packages, and jobs that no other job uses."""
    users: list[list[int]] = [[] for _ in plan.jobs]
    for job in plan.jobs:
        for needed in job.inputs:
            users[needed].append(job.number)
    kept = (j.number for j in plan.jobs if j.stage is Stage.PACKAGE or not users[j.number])
    inputs = [job.inputs for job in plan.jobs]
    return JobGraph(plan.fingerprints, inputs, users, frozenset(kept))


def missing_jobs(graph: JobGraph, known: Collection[str], numbers: Iterable[int]) -> set[int]:
    """Return the wanted jobs and their inputs that lack results.

    Inputs of a job with a result are omitted: an existing package needs no core.
    """
    needed: set[int] = set()
    waiting = [number for number in numbers if graph.fingerprints[number] not in known]
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting += (i for i in graph.inputs[number] if graph.fingerprints[i] not in known)
    return needed


def urgency(plan: Plan, graph: JobGraph) -> list[int]:
    """Return each job's seconds on the longest path from its start to the plan's end."""
    ways = [0] * len(graph.inputs)
    for job in reversed(plan.jobs):
        after = max((ways[user] for user in graph.users[job.number]), default=0)
        ways[job.number] = after + (job.settings.needs.time or _USUAL[job.stage])
    return ways
