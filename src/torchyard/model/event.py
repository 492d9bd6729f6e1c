"""Events of a build, the source of progress displays, logs and `--json`.

`at` is in seconds since the start of the build or the single run.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from torchyard.model.result import Result, Usage
from torchyard.model.values import Value

_FEW = 20
"""Maximum number of result files listed when a job ends; beyond it, only their number is."""

Outcome = Literal["built", "cached", "failed", "retry", "skipped"]


class Event(Value, kw_only=True, tag_field="event", tag=str.lower):
    """The base of all events."""

    at: float = 0.0


class Began(Event, kw_only=True):
    """A build starts: the number of jobs in its plan, and of jobs to run in each stage.

    `expected` is the usual duration of a stage's jobs in seconds, if the file has it; `slots`
    are this machine's, 0 if jobs run elsewhere.
    """

    version: Literal[1] = 1
    project: str
    store: str
    jobs: int
    needed: int
    cached: int
    slots: int
    stages: dict[str, int] = {}
    expected: dict[str, float] = {}


class Started(Event, kw_only=True):
    """A job starts; `work` is its directory, `worker` its remote machine."""

    job: str
    fingerprint: str
    work: str = ""
    pid: int = 0
    attempt: int = 1
    worker: str = ""


class Stepping(Event, kw_only=True):
    """A step of a job starts."""

    job: str
    step: str
    number: int
    of: int


class Progress(Event, kw_only=True):
    """The progress of a step; `total` is 0 while unknown, `bytes` are those written so far.

    `what` is its current action, `left` the estimated remaining seconds, or None.
    """

    job: str
    done: int
    total: int = 0
    unit: Literal["commands", "tests", "bytes"] = "commands"
    what: str = ""
    left: float | None = None


class Stepped(Event, kw_only=True):
    """A step of a job succeeded."""

    job: str
    usage: Usage


class Noted(Event, kw_only=True):
    """A note for users about a job or the build."""

    text: str
    job: str | None = None


class SlotsChanged(Event, kw_only=True):
    """The memory guard changed the number of compile slots."""

    allowed: int
    total: int
    paused: int
    available: int
    why: str


class Made(Value, kw_only=True):
    """A file of a result, with its sha256."""

    path: str
    size: int
    digest: str


class Ended(Event, kw_only=True):
    """A job ended; with outcome `retry` it will run again, a `skipped` one never started.

    `made` lists the files of a result if they are few. `reason` is a word such as `memory` or
    `missing` for a failure that is not the job's fault; `known` is the cause of a known failure.
    """

    job: str
    fingerprint: str
    outcome: Outcome
    seconds: float = 0.0
    size: int = 0
    memory: int = 0
    digest: str = ""
    files: int = 0
    made: tuple[Made, ...] = ()
    code: int = 0
    reason: str = ""
    why: str = ""
    known: str = ""


def ended_well(result: Result, *, built: bool) -> Ended:
    """Return the event of a job with a result, either `built` or cached."""
    files = result.tree.files
    few = files if len(files) <= _FEW else ()
    return Ended(
        job=result.id,
        fingerprint=result.fingerprint,
        outcome="built" if built else "cached",
        seconds=result.seconds,
        size=result.size,
        memory=max((step.memory for step in result.steps), default=0),
        digest=result.tree.digest,
        files=len(files),
        made=tuple(Made(path=file.path, size=file.size, digest=file.digest) for file in few),
    )


class Finished(Event, kw_only=True):
    """A build ended, with the number of its plan's jobs by outcome.

    The results of `unneeded` jobs are only inputs of cached ones.
    """

    built: int
    cached: int
    failed: int
    skipped: int
    unneeded: int = 0
    seconds: float
    interrupted: bool = False


AnyEvent = Began | Started | Stepping | Progress | Stepped | Noted | SlotsChanged | Ended | Finished

_DECODER = msgspec.json.Decoder(AnyEvent)


Listener = Callable[[AnyEvent], None]
"""A function that is called with each event."""


def encode_event(event: Event) -> bytes:
    """Return the event as one line of JSON."""
    return msgspec.json.encode(event) + b"\n"


def decode_event(line: bytes) -> AnyEvent:
    event: AnyEvent = _DECODER.decode(line)
    return event
