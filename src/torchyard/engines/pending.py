"""Which jobs of a plan are pending, and how urgent each is. Nothing here runs anything."""

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
"""Assumed seconds of a job if the file gives none: only the proportions matter."""


class JobGraph(NamedTuple):
    """A plan as numbers: for each job its fingerprint, its inputs and its users."""

    fingerprints: list[str]
    inputs: list[tuple[int, ...]]
    users: list[list[int]]
    wanted: frozenset[int]


def job_graph(plan: Plan) -> JobGraph:
    """Return the graph of a plan; wanted are its packages, and jobs that no other job uses."""
    users: list[list[int]] = [[] for _ in plan.jobs]
    for job in plan.jobs:
        for needed in job.inputs:
            users[needed].append(job.number)
    kept = (j.number for j in plan.jobs if j.stage is Stage.PACKAGE or not users[j.number])
    inputs = [job.inputs for job in plan.jobs]
    return JobGraph(plan.fingerprints, inputs, users, frozenset(kept))


def demanded(graph: JobGraph, known: Collection[str], numbers: Iterable[int]) -> set[int]:
    """Return the jobs, and the inputs of jobs, that have no result yet.

    Inputs of a job that has a result are left out: an existing package needs no core.
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
    """Return for each job the seconds of the longest path from its start to the end of the plan."""
    ways = [0] * len(graph.inputs)
    for job in reversed(plan.jobs):
        after = max((ways[user] for user in graph.users[job.number]), default=0)
        ways[job.number] = after + (job.settings.needs.time or _USUAL[job.stage])
    return ways
