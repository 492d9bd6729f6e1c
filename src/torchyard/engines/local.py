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
from torchyard.plan.graph import Plan
from torchyard.store.store import Store

Listen = Callable[[Happening], None]


class Options(NamedTuple):
    """How a plan is built: where things are, and how much is done at one time."""

    folder: Path
    work: Path
    file: str
    sandbox: str | None
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
    needed = len(demanded(graph, known, graph.wanted))
    tell(
        Began(
            project=plan.label,
            store=store.url,
            jobs=len(plan),
            needed=needed,
            cached=len(cached),
            slots=options.slots,
        )
    )
    ends: dict[int, Ended] = {}
    stopped = False
    if needed:
        # What runs jobs and watches memory takes longer to load than finding that all is done.
        from torchyard.engines.runner import Runner  # noqa: PLC0415

        schedule = Schedule(graph, known, urgency(plan, graph))
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
