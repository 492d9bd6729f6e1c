"""The interface of engines: classes that build the missing jobs of a plan, and emit events."""

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
    """The context of a build besides its plan and store."""

    folder: Path
    """The directory for error output of failed jobs, as files NAME.errors."""
    home: Path
    """The directory `.torchyard` beside the file."""
    file: str
    cache: str | None = None
    """Compile cache of the file."""
    copies: str | None = None
    """How much of the store to cache on the machine, such as `50 GB`."""
    keep_going: bool = False


class Engine(Protocol):
    """Decides where and when the jobs of a plan run.

    An engine is a `msgspec.Struct`. Each field is an option of `torchyard build`, with a default,
    and the help text in `msgspec.Meta(description=…)`. Its entry point in the group
    `torchyard.engines` names it for `--engine`.
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
    """Return the mean time of each stage's jobs, if the file gives the times of all."""
    given: dict[str, list[int | None]] = {}
    for stage, seconds in times:
        given.setdefault(stage, []).append(seconds)
    known = {stage: [t for t in durations if t is not None] for stage, durations in given.items()}
    return {s: sum(t) / len(t) for s, t in known.items() if len(t) == len(given[s])}
