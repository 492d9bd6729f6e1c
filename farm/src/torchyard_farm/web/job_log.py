"""A job's events, rendered as log lines and a short summary."""

from collections.abc import Iterator, Sequence

import msgspec

from torchyard.model.event import (
    AnyEvent,
    Ended,
    Progress,
    Stepped,
    Stepping,
    decode_event,
)
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.model.result import Usage
from torchyard.terminal.events import event_line, show_progress

_BEGIN = '{"event":'
_LONGEST = 1 << 20
"""Maximum length of an event; longer lines are not events."""

_SUMMARY, _LINES = 200, 8
"""Maximum characters of a line in lists, and lines of a log that may follow it."""


class JobLog:
    """Reads the events of a job from the output of `torchyard run --json`."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._rest = self._step = ""
        self._steps: list[Usage] = []
        self._ended: Ended | None = None
        self.activity = ""
        """The current action of the job, in a few words."""

    def feed(self, text: str) -> str:
        """Process complete lines of output, and return the lines for the log."""
        lines = (line for piece in text.splitlines() for line in self._take(piece))
        return "".join(f"{line}\n" for line in lines)

    def _take(self, piece: str) -> Iterator[str]:
        """Read a line. Buildbot breaks long ones, so an event may arrive in pieces."""
        if self._rest and piece.startswith(_BEGIN):
            yield self._rest
            self._rest = ""
        whole = self._rest + piece
        if not whole.startswith(_BEGIN):
            yield piece
            return
        try:
            event = decode_event(whole.encode())
        except msgspec.DecodeError:
            self._rest = whole if len(whole) < _LONGEST else ""
            if not self._rest:
                yield whole
            return
        self._rest = ""
        self._remember(event)
        line = event_line(event)
        if line is not None:
            yield line
        if isinstance(event, Ended):
            yield from self._facts(event)

    def _remember(self, event: AnyEvent) -> None:
        match event:
            case Stepping():
                self._step = self.activity = f"step {event.number}/{event.of}: {event.step}"
            case Progress():
                self.activity = ", ".join(filter(None, (self._step, show_progress(event))))
            case Stepped():
                self._steps.append(event.usage)
            case Ended():
                self._ended = event
            case _:
                pass

    @property
    def summary(self) -> str:
        """The outcome of the job, in a line; empty if it did not report it."""
        ended = self._ended
        if ended is None:
            return ""
        if ended.outcome in ("built", "cached"):
            verb = "built" if ended.files else "done"
            how = f"{verb} in {show_duration(ended.seconds)}"
            made = [show_count(ended.files, "file"), show_size(ended.size)] if ended.files else []
            return ", ".join([how if ended.outcome == "built" else "the store had it", *made])
        why = ended.why.partition("\n")[0].removeprefix(f"{self._job}: ")
        return _short(f"{ended.known}: {why}" if ended.known else why)

    @property
    def reason(self) -> str:
        """The reason of its failure, in a word, if it is not the job's fault."""
        return self._ended.reason if self._ended else ""

    @property
    def headline(self) -> str:
        """Stage and summary, for the history of a cell."""
        return f"{self._job.partition(':')[0]}: {self.summary}"

    @property
    def details(self) -> str:
        """The summary, followed by the log's lines that explain a failure."""
        lines = self._ended.why.splitlines()[1 : 1 + _LINES] if self._ended else ()
        return "\n".join((self.summary, *(_short(line.strip()) for line in lines)))

    def _facts(self, ended: Ended) -> Iterator[str]:
        """Return lines about a result: its files, and the resources of each step."""
        if ended.outcome not in ("built", "cached"):
            return
        yield f"fingerprint {ended.fingerprint}"
        files = [(made.path, show_size(made.size), made.digest) for made in ended.made]
        yield from _table(("file", "size", "sha256"), files)
        steps = [
            (
                step.step,
                show_duration(step.seconds),
                show_duration(step.cpu),
                show_size(step.memory),
                show_size(step.disk),
            )
            for step in self._steps
        ]
        yield from _table(("step", "time", "processors", "memory", "disk"), steps)


def _short(line: str) -> str:
    return line if len(line) <= _SUMMARY else f"{line[: _SUMMARY - 1]}…"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Return aligned columns after an empty line; empty without rows."""
    if not rows:
        return
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    yield ""
    for line in lines:
        yield "  ".join(map(str.ljust, line, widths)).rstrip()
