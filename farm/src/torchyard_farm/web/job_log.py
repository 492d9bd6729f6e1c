"""What a job tells while it runs, made into a log and a few words for people."""

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
from torchyard.terminal.events import line_of

_BEGIN = '{"event":'
_LONGEST = 1 << 20
"""An event is not longer than this; what goes on and on is none."""

_SUMMARY, _LINES = 200, 8
"""Letters of a line that stands in lists, and how many lines of a log may follow it."""


class JobLog:
    """Hears the events of one job, as `torchyard run --json` prints them."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._rest = ""
        self._steps: list[Usage] = []
        self._ended: Ended | None = None
        self.now = ""
        """What it is at, in a few words."""

    def hear(self, text: str) -> str:
        """Take whole lines of what was printed, and give what people should read of them."""
        told = (line for piece in text.splitlines() for line in self._take(piece))
        return "".join(f"{line}\n" for line in told)

    def _take(self, piece: str) -> Iterator[str]:
        """Read a line. Whoever carries it breaks long ones, so an event may come in pieces."""
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
        line = line_of(event)
        if line is not None:
            yield line
        if isinstance(event, Ended):
            yield from self._facts(event)

    def _remember(self, event: AnyEvent) -> None:
        match event:
            case Stepping():
                self.now = f"step {event.number}/{event.of}: {event.step}"
            case Progress():
                self.now = f"{self.now.partition(',')[0]}, {event.done:,} of {event.total:,}"
            case Stepped():
                self._steps.append(event.usage)
            case Ended():
                self._ended = event
            case _:
                pass

    @property
    def summary(self) -> str:
        """How it ended, in a line; empty if it did not say."""
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
        """Why it failed, in one word, if it is not the job's fault."""
        return self._ended.reason if self._ended else ""

    @property
    def headline(self) -> str:
        """The summary behind the stage, for the history of a cell."""
        return f"{self._job.partition(':')[0]}: {self.summary}"

    @property
    def telling(self) -> str:
        """The summary, and below it the lines of the log that tell why it failed."""
        lines = self._ended.why.splitlines()[1 : 1 + _LINES] if self._ended else ()
        return "\n".join((self.summary, *(_short(line.strip()) for line in lines)))

    def _facts(self, ended: Ended) -> Iterator[str]:
        """All that is known of a result: its files, and what each step took."""
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
    """Columns below each other, behind an empty line; nothing if there are no rows."""
    if not rows:
        return
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    yield ""
    for line in lines:
        yield "  ".join(map(str.ljust, line, widths)).rstrip()
