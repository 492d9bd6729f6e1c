"""The status board of a build: state from events, and the drawing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from rich.console import Console, ConsoleOptions
from rich.text import Text

from torchyard.model.event import (
    AnyEvent,
    Began,
    Ended,
    Finished,
    Noted,
    Progress,
    SlotsChanged,
    Started,
    Stepping,
)
from torchyard.model.quantity import show_duration, show_size
from torchyard.terminal.events import finished_line, show_progress
from torchyard.terminal.progress import shorten

_NOTES = 3
"""The most notes on a board."""

_MANY = 10**6
"""The fewest bytes worth showing."""

_SHOWN = 12
"""The most running jobs on a board, or half as many if each takes two lines."""


class ActiveJob:
    """A running job: its start, step and progress."""

    def __init__(self, started: Started) -> None:
        self.job = started.job
        self.began = started.at
        self.worker = started.worker
        self.step = f"on {started.worker}" if started.worker else ""
        self.progress: Progress | None = None

    @property
    def activity(self) -> str:
        """The step, what it does now, and without other progress, the bytes written."""
        if self.progress is None:
            return self.step
        parts = self.step, self.progress.what
        if self.progress.unit == "bytes" and self.progress.done >= _MANY:
            parts = self.step, show_progress(self.progress)
        return ", ".join(filter(None, parts))


class Board:
    """The state of a build after the events so far."""

    def __init__(self) -> None:
        self.began: Began | None = None
        self.finished: Finished | None = None
        self.running: dict[str, ActiveJob] = {}
        self.outcomes: Counter[str] = Counter()
        self.failed: list[Ended] = []
        self.notes: list[str] = []
        self.slots: SlotsChanged | None = None
        self.now = 0.0
        self._ended: Counter[str] = Counter()
        self._lasted: dict[str, list[float]] = {}

    def __call__(self, event: AnyEvent) -> None:
        """Apply an event."""
        self.now = max(self.now, event.at)
        match event:
            case Began():
                self.began = event
            case Started():
                self.running[event.job] = ActiveJob(event)
            case Stepping() if event.job in self.running:
                self.running[event.job].step = f"{event.number}/{event.of} {event.step}"
                self.running[event.job].progress = None
            case Progress() if event.job in self.running:
                self.running[event.job].progress = event
            case SlotsChanged():
                self.slots = event
            case Noted():
                text = f"{event.job}: {event.text}" if event.job else event.text
                self.notes = [*self.notes, text][-_NOTES:]
            case Ended():
                self._end(event)
            case Finished():
                self.finished = event
            case _:
                pass

    def _end(self, event: Ended) -> None:
        self.running.pop(event.job, None)
        if event.outcome == "retry":
            self.notes = [*self.notes, f"{event.job} is tried again: {event.why}"][-_NOTES:]
            return
        self.outcomes[event.outcome] += 1
        self._ended[_stage(event.job)] += 1
        if event.outcome == "failed":
            self.failed.append(event)
        if event.outcome == "built":
            self._lasted.setdefault(_stage(event.job), []).append(event.seconds)

    @property
    def ended(self) -> int:
        return sum(self.outcomes.values())

    def remaining(self, now: float) -> float | None:
        """Return the estimated seconds left, or None without an estimate."""
        if not self.began or self.finished:
            return None
        usual = {stage: sum(lasted) / len(lasted) for stage, lasted in self._lasted.items()}
        usual = {**self.began.expected, **usual}
        running = Counter(_stage(job) for job in self.running)
        left = Counter(self.began.stages) - self._ended - running
        going = [self._left(job, usual, now) for job in self.running.values()]
        if any(stage not in usual for stage in left) or None in going:
            return None
        seconds = [left_over for left_over in going if left_over is not None]
        work = sum(seconds) + sum(count * usual[stage] for stage, count in left.items())
        return max([work / max(1, len(self.running)), *seconds])

    def _left(self, job: ActiveJob, usual: dict[str, float], now: float) -> float | None:
        """Return the seconds left of a running job, from its progress or from other jobs."""
        if job.progress and job.progress.left is not None:
            return max(0.0, job.progress.left - (now - job.progress.at))
        lasts = usual.get(_stage(job.job))
        return None if lasts is None else max(0.0, lasts - (now - job.began))


def _stage(identifier: str) -> str:
    return identifier.partition(":")[0]


class BoardView(NamedTuple):
    """A snapshot of the board; `memory` maps running jobs to bytes, where known."""

    board: Board
    now: float
    memory: Mapping[str, int] = MappingProxyType({})

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[Text]:
        board, began = self.board, self.board.began
        if began is None:
            yield Text("nothing has begun")
            return
        yield self._headline(began)
        label = f"{began.project}/"
        if not board.finished:
            yield from self._rows(label, options.max_width)
            for note in board.notes:
                yield Text(f"note: {note.replace(label, '')}", style="yellow")
        for ended in board.failed[-_NOTES:]:
            why = f"{ended.job}: {ended.known}" if ended.known else ended.why.partition("\n")[0]
            why = why.replace(label, "")
            yield Text(f"failed: {why}", style="red")

    def _headline(self, began: Began) -> Text:
        board = self.board
        if board.finished:
            return Text(finished_line(board.finished))
        text = Text.assemble((began.project, "bold"), f"  {board.ended} of {began.needed:,} jobs")
        if board.outcomes["failed"]:
            text.append(f", {board.outcomes['failed']} failed", style="bold red")
        text.append(f"  {clock(self.now)}")
        left = board.remaining(self.now)
        if left is not None:
            text.append(f", about {show_duration(round(left))} left")
        if board.slots and board.slots.allowed < began.slots:
            text.append(f"  {board.slots.allowed} of {began.slots} slots", style="yellow")
        return text

    def _rows(self, label: str, width: int) -> Iterator[Text]:
        """A line for each running job, or two if its activity would be cut."""
        shown = list(self.board.running.values())[:_SHOWN]
        figures = [self._figures(job) for job in shown]
        names = [job.job.replace(label, "") for job in shown]
        wide, longest, step = (
            max(map(len, texts), default=0)
            for texts in (figures, names, [job.activity for job in shown])
        )
        is_wide = longest + 2 + step + 2 + wide <= width
        longest = min(longest, width - wide - 2)
        shown = shown if is_wide else shown[: _SHOWN // 2]
        for job, name, text in zip(shown, names, figures, strict=False):
            line = Text(f"{shorten(name, longest):{longest}}")
            if is_wide and step:
                line.append(f"  {job.activity:{step}}", style="dim")
            line.append(f"  {text:>{wide}}")
            yield line
            if not is_wide and job.activity:
                yield Text(f"  {shorten(job.activity, width - 2)}", style="dim")
        if len(self.board.running) > len(shown):
            yield Text(f"and {len(self.board.running) - len(shown)} more", style="dim")

    def _figures(self, job: ActiveJob) -> str:
        if job.worker:  # nothing else is known of a remote job
            return clock(self.now - job.began)
        counts, progress = "", job.progress
        if progress and progress.unit != "bytes":
            total = f"/{progress.total}" if progress.total else ""
            counts = f"{progress.done}{total}"
        memory = self.memory.get(job.job, 0)
        return (
            f"{counts:>9} {show_size(memory) if memory else '':>7} {clock(self.now - job.began):>7}"
        )


def clock(seconds: float) -> str:
    """Format a running time: `7:05`, `1:02:30`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
