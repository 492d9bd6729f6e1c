"""The local engine: builds a plan on this machine."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.engines.demand import demanded, graph_of, urgency
from torchyard.engines.schedule import Schedule
from torchyard.model.event import Began, Ended, Finished, Happening
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan
from torchyard.plan.order import order_of
from torchyard.recipes import compiles_by_recipe, steps_of
from torchyard.store.store import Store

Listen = Callable[[Happening], None]


class Options(NamedTuple):
    """How a plan is built: where things are, and how much is done at one time."""

    folder: Path
    work: Path
    file: str
    sandbox: str | None
    cache: str | None
    copies: str | None
    jobs: int
    slots: int
    keep_going: bool


class Build(NamedTuple):
    """How a build went: the jobs that were in the store before, and how each other one ended."""

    cached: list[int]
    ends: dict[int, Ended]


def build(plan: Plan, store: Store, options: Options, listen: Listen) -> Build:
    """Do all that is wanted of a plan and not in the store."""
    began = time.monotonic()

    def tell(event: Happening) -> None:
        listen(msgspec.structs.replace(event, at=round(time.monotonic() - began, 3)))

    graph = graph_of(plan)
    known = store.known(graph.fingerprints)
    cached = [n for n in sorted(graph.wanted) if graph.fingerprints[n] in known]
    left = demanded(graph, known, graph.wanted)
    stages = Counter(plan.columns.stages[number].value for number in left)
    _check_steps(plan, left)
    if not options.keep_going:
        _check_pythons(plan, left)
    tell(
        Began(
            project=plan.label,
            store=store.url,
            jobs=len(plan),
            needed=len(left),
            stages=dict(stages),
            expected=_expected(plan, left),
            cached=len(cached),
            slots=options.slots,
        )
    )
    ends: dict[int, Ended] = {}
    stopped = False
    if left:
        # What runs jobs and watches memory takes longer to load than finding that all is done.
        from torchyard.engines.runner import Runner  # noqa: PLC0415

        schedule = Schedule(graph, known, left, urgency(plan, graph))
        ends, stopped = Runner(plan, schedule, store, options, tell).run()
    counts = Counter(ended.outcome for ended in ends.values())
    tell(
        Finished(
            built=counts["built"],
            cached=len(cached) + counts["cached"],
            failed=counts["failed"],
            skipped=counts["skipped"],
            seconds=round(time.monotonic() - began, 3),
            interrupted=stopped,
        )
    )
    return Build(cached, ends)


def _check_steps(plan: Plan, left: set[int]) -> None:
    """Complain now about a stage that nobody explained, not when its turn comes."""
    stages = {plan.columns.stages[number]: number for number in left}
    for number in stages.values():
        steps_of(order_of(plan, plan.job(number)))


def _check_pythons(plan: Plan, left: set[int]) -> None:
    """Complain now about a Python that is not there, not when a core was compiled for it."""
    stages, scopes = plan.columns.stages, plan.columns.scopes
    bound = {scopes[number][-1]: number for number in left if stages[number] is Stage.BINDINGS}
    for python, number in sorted(bound.items()):
        if compiles_by_recipe(order_of(plan, plan.job(number)).task):
            from torchyard.toolchain.interpreters import interpreter_for  # noqa: PLC0415 - slow

            interpreter_for(python)


def _expected(plan: Plan, left: set[int]) -> dict[str, float]:
    """How long a job of each stage should last on average, where the file says it of all."""
    times: dict[str, list[int | None]] = {}
    for number in left:
        needs = plan.columns.settings[number].needs
        times.setdefault(plan.columns.stages[number].value, []).append(needs.time)
    known = {stage: [t for t in given if t is not None] for stage, given in times.items()}
    return {s: sum(t) / len(t) for s, t in known.items() if len(t) == len(times[s])}
