"""What an engine is: something that does what is left of a plan, and tells how it goes."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.model.event import AnyEvent, Ended, Finished
from torchyard.plan.graph import Plan
from torchyard.store.store import Store

Listen = Callable[[AnyEvent], None]


class Options(NamedTuple):
    """How a plan is built: where things are, and how much is done at one time.

    What a job that failed said at last is left in `folder`, as a file NAME.errors.
    """

    folder: Path
    work: Path
    file: str
    sandbox: str | None
    cache: str | None
    copies: str | None
    jobs: int
    slots: int
    keep_going: bool
    farm: Path | None = None


class Build(NamedTuple):
    """How a build went: packages that were in the store before, how each job ended, what now."""

    project: str
    packages: list[str]
    """Fingerprints."""
    ends: list[Ended]
    onward: str
    """What to do about jobs that failed or were not begun."""


Engine = Callable[[Plan, Store, Options, Listen], Build]


def clocked(listen: Listen) -> Listen:
    """Let somebody hear of events with the seconds that have passed since now."""
    began = time.monotonic()

    def tell(event: AnyEvent) -> None:
        listen(msgspec.structs.replace(event, at=round(time.monotonic() - began, 3)))

    return tell


def finished(ends: Collection[Ended], cached: int, seconds: float, *, stopped: bool) -> Finished:
    """Tell how a build went, of which so many jobs were in the store before."""
    counts = Counter(ended.outcome for ended in ends)
    return Finished(
        built=counts["built"],
        cached=cached + counts["cached"],
        failed=counts["failed"],
        skipped=counts["skipped"],
        seconds=round(seconds, 3),
        interrupted=stopped,
    )


def expected(times: Iterable[tuple[str, int | None]]) -> dict[str, float]:
    """How long a job of each stage should last on average, where the file says it of all."""
    given: dict[str, list[int | None]] = {}
    for stage, seconds in times:
        given.setdefault(stage, []).append(seconds)
    known = {stage: [t for t in some if t is not None] for stage, some in given.items()}
    return {s: sum(t) / len(t) for s, t in known.items() if len(t) == len(given[s])}
