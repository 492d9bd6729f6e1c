"""Which jobs of a plan have to be done, and which of them first. Nothing here runs anything."""

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
"""Seconds that a job is taken to last if nobody says better: only the proportions matter."""


class Graph(NamedTuple):
    """A plan as numbers: for each job its fingerprint, its inputs and who needs it."""

    fingerprints: list[str]
    inputs: list[tuple[int, ...]]
    users: list[list[int]]
    wanted: frozenset[int]


def graph_of(plan: Plan) -> Graph:
    """What is wanted of a plan: its packages, and everything that nothing else is made from."""
    users: list[list[int]] = [[] for _ in plan.jobs]
    for job in plan.jobs:
        for needed in job.inputs:
            users[needed].append(job.number)
    kept = (j.number for j in plan.jobs if j.stage is Stage.PACKAGE or not users[j.number])
    inputs = [job.inputs for job in plan.jobs]
    return Graph(plan.fingerprints, inputs, users, frozenset(kept))


def demanded(graph: Graph, known: Collection[str], numbers: Iterable[int]) -> set[int]:
    """Some jobs and what they are made from, as far as there are no results of them.

    What a result was made from is not asked for: a package that is there needs no core.
    """
    needed: set[int] = set()
    waiting = [number for number in numbers if graph.fingerprints[number] not in known]
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting += (i for i in graph.inputs[number] if graph.fingerprints[i] not in known)
    return needed


def urgency(plan: Plan, graph: Graph) -> list[int]:
    """How long, for each job, the longest way from its start to the end of the plan is."""
    ways = [0] * len(graph.inputs)
    for job in reversed(plan.jobs):
        after = max((ways[user] for user in graph.users[job.number]), default=0)
        ways[job.number] = after + (job.settings.needs.time or _USUAL[job.stage])
    return ways
