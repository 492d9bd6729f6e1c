"""What an engine is: a class that builds the missing jobs of a plan and emits events meanwhile."""

import time
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from torchyard.model.build_result import BuildResult
from torchyard.model.event import AnyEvent, Ended, Finished, Listener
from torchyard.plan.graph import Plan
from torchyard.store.store import Store


class BuildContext(NamedTuple):
    """What every engine gets to know about a build besides its plan and store."""

    folder: Path
    """Where engines leave the error output of each failed job, as a file NAME.errors."""
    home: Path
    """The directory `.torchyard` beside the file."""
    file: str
    cache: str | None = None
    """Compile cache of the file."""
    copies: str | None = None
    """How much of the store jobs keep on the machine, such as `50 GB`."""
    keep_going: bool = False


class Engine(Protocol):
    """Where and when the jobs of a plan run.

    An engine is a `msgspec.Struct`. Each of its fields is an option of `torchyard build`, with the
    help text in `msgspec.Meta(description=…)`, and all have defaults. The entry point of the class
    in the group `torchyard.engines` gives it its name for `--engine`.
    """

    def build(
        self, plan: Plan, store: Store, context: BuildContext, on_event: Listener, /
    ) -> BuildResult:
        """Build all jobs of a plan that are not in the store."""
        ...


def clocked(on_event: Listener) -> Listener:
    """Wrap a listener so that events carry the seconds since now."""
    began = time.monotonic()

    def on_clocked(event: AnyEvent) -> None:
        on_event(msgspec.structs.replace(event, at=round(time.monotonic() - began, 3)))

    return on_clocked


def finished(
    ends: Collection[Ended], cached: int, unneeded: int, seconds: float, *, stopped: bool
) -> Finished:
    """Summarise a build; `cached` jobs were in the store before."""
    counts = Counter(ended.outcome for ended in ends)
    return Finished(
        built=counts["built"],
        cached=cached + counts["cached"],
        failed=counts["failed"],
        skipped=counts["skipped"],
        unneeded=unneeded,
        seconds=round(seconds, 3),
        interrupted=stopped,
    )


def expected(times: Iterable[tuple[str, int | None]]) -> dict[str, float]:
    """Return the mean time of each stage's jobs, for stages whose jobs all have one in the file."""
    given: dict[str, list[int | None]] = {}
    for stage, seconds in times:
        given.setdefault(stage, []).append(seconds)
    known = {stage: [t for t in some if t is not None] for stage, some in given.items()}
    return {s: sum(t) / len(t) for s, t in known.items() if len(t) == len(given[s])}
