"""Events as lines of text, for output without a board: pipes, files, CI logs."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import assert_never

from torchyard.model.event import (
    AnyEvent,
    Began,
    Ended,
    Event,
    Finished,
    Noted,
    Progress,
    SlotsChanged,
    Started,
    Stepped,
    Stepping,
    encode_event,
)
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.terminal.console import mark_printed, write

_EVERY = 60
"""Seconds between two progress lines of a job."""


def event_line(event: AnyEvent) -> str | None:  # noqa: PLR0911 - each kind
    """Return the line for an event, or None for minor events."""
    match event:
        case Began():
            slots = f", with {show_count(event.slots, 'compile slot')}" if event.slots else ""
            return (
                f"{event.project}: {event.needed:,} of {show_count(event.jobs, 'job')} to do{slots}"
            )
        case Started():
            again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
            where = f" on {event.worker}" if event.worker else ""
            return f"started  {event.job}{where}{again}"
        case Stepping():
            return f"step {event.number}/{event.of}  {event.job}: {event.step}"
        case Progress() | Stepped():
            return None
        case Noted():
            return f"note     {event.job}: {event.text}" if event.job else f"note     {event.text}"
        case SlotsChanged():
            return f"slots    {event.allowed} of {event.total}: {event.why}"
        case Ended():
            return _ended(event)
        case Finished():
            return finished_line(event)
        case _:
            assert_never(event)


def _ended(event: Ended) -> str:
    facts = []
    if event.outcome == "built":
        facts = [show_duration(event.seconds), show_size(event.size)]
    if why := event.known or event.why:
        facts.append(why.partition("\n")[0].removeprefix(f"{event.job}: "))
    return f"{event.outcome:8} {event.job}" + (f": {', '.join(facts)}" if facts else "")


def finished_line(event: Finished) -> str:
    """Return the closing line of a build."""
    counts = [
        f"{count:,} {'not needed' if word == 'unneeded' else word}"
        for word in ("built", "cached", "failed", "skipped", "unneeded")
        if (count := getattr(event, word))
    ]
    how = "interrupted" if event.interrupted else "failed" if event.failed else "done"
    return f"{how} after {show_duration(event.seconds)}: {', '.join(counts) or 'nothing to do'}"


def show_progress(event: Progress) -> str:
    """Return a step's activity and progress: `7 of 20 commands`."""
    if event.unit == "bytes":
        share = f"{show_size(event.done)} written"
    else:
        total = f" of {event.total:,}" if event.total else ""
        share = f"{event.done:,}{total} {event.unit}"
    return f"{event.what}, {share}" if event.what else share


def printer(put: Callable[[str], None]) -> Callable[[AnyEvent], None]:
    """Return a listener that prints events as lines, and progress once a minute."""
    reported: dict[str, float] = {}

    def listen(event: AnyEvent) -> None:
        line = event_line(event)
        if isinstance(event, Started | Stepping):
            reported[event.job] = event.at
        elif (
            isinstance(event, Progress) and event.at - reported.setdefault(event.job, 0.0) >= _EVERY
        ):
            reported[event.job] = event.at
            left = "" if event.left is None else f", about {show_duration(event.left)} left"
            line = f"working  {event.job}: {show_progress(event)}{left}"
        if line is not None:
            put(line)

    return listen


def emit_event(event: Event) -> None:
    """Write an event to standard output; if it is closed, the job continues."""
    mark_printed()
    with suppress(OSError):
        os.write(sys.stdout.fileno(), encode_event(event))


def write_event(event: Event) -> None:
    """Write an event to standard output; if it is closed, this process exits."""
    write(encode_event(event))
