"""The local engine: builds a plan on this machine."""

import time
from collections import Counter

from torchyard.engines.engine import Build, Listen, Options, clocked, expected, finished
from torchyard.engines.pending import demanded, graph_of, urgency
from torchyard.engines.schedule import Schedule
from torchyard.model.event import Began, Ended
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan
from torchyard.plan.order import order_of
from torchyard.recipes import compiles_by_recipe, steps_of
from torchyard.store.store import Store


def build(plan: Plan, store: Store, options: Options, listen: Listen) -> Build:
    """Do all that is wanted of a plan and not in the store."""
    began = time.monotonic()
    tell = clocked(listen)
    graph = graph_of(plan)
    known = store.known(graph.fingerprints)
    cached = [n for n in sorted(graph.wanted) if graph.fingerprints[n] in known]
    left = demanded(graph, known, graph.wanted)
    needed = [plan.jobs[number] for number in left]
    check_steps(plan, left)
    if not options.keep_going:
        _check_pythons(plan, left)
    tell(
        Began(
            project=plan.label,
            store=store.url,
            jobs=len(plan),
            needed=len(left),
            stages=dict(Counter(job.stage.value for job in needed)),
            expected=expected((job.stage.value, job.settings.needs.time) for job in needed),
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
    told = list(ends.values())
    tell(finished(told, len(cached), time.monotonic() - began, stopped=stopped))
    packages = [graph.fingerprints[n] for n in cached if plan.jobs[n].stage is Stage.PACKAGE]
    more = "" if stopped or options.keep_going else "; --keep-going does what it can"
    return Build(plan.label, packages, told, f"the same command goes on from here{more}")


def check_steps(plan: Plan, left: set[int]) -> None:
    """Complain now about a stage that nobody explained, not when its turn comes."""
    stages = {plan.jobs[number].stage: plan.jobs[number] for number in left}
    for job in stages.values():
        steps_of(order_of(plan, job))


def _check_pythons(plan: Plan, left: set[int]) -> None:
    """Complain now about a Python that is not there, not when a core was compiled for it."""
    jobs = [plan.jobs[number] for number in left]
    bound = {job.scope[-1]: job for job in jobs if job.stage is Stage.BINDINGS}
    for python, job in sorted(bound.items()):
        if compiles_by_recipe(order_of(plan, job).task):
            from torchyard.toolchain.interpreters import interpreter_for  # noqa: PLC0415 - slow

            interpreter_for(python)
