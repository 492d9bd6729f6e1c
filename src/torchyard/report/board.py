"""What a build looks like just now: events folded into a board, and the board drawn."""

from collections import Counter
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from torchyard.model.event import (
    Began,
    Ended,
    Finished,
    Happening,
    Noted,
    Progress,
    SlotsChanged,
    Started,
    Stepping,
)
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.report.events import finished_line

_NOTES = 3
"""How many notes a board has room for."""

_SHOWN = 12
"""How many running jobs a board has room for."""


class Running:
    """A job that is running: since when, at which step, how far."""

    def __init__(self, started: Started) -> None:
        self.job = started.job
        self.began = started.at
        self.expected = started.expected
        self.step = ""
        self.progress: tuple[int, int] | None = None


class Board:
    """Everything that events have said about a build so far."""

    def __init__(self) -> None:
        self.began: Began | None = None
        self.finished: Finished | None = None
        self.running: dict[str, Running] = {}
        self.outcomes: Counter[str] = Counter()
        self.failed: list[Ended] = []
        self.notes: list[str] = []
        self.slots: SlotsChanged | None = None
        self.now = 0.0
        self._lasted: dict[str, list[float]] = {}

    def __call__(self, event: Happening) -> None:
        """Take an event in."""
        self.now = max(self.now, event.at)
        match event:
            case Began():
                self.began = event
            case Started():
                self.running[event.job] = Running(event)
            case Stepping() if event.job in self.running:
                self.running[event.job].step = f"{event.number}/{event.of} {event.step}"
                self.running[event.job].progress = None
            case Progress() if event.job in self.running:
                self.running[event.job].progress = (event.done, event.total)
            case SlotsChanged():
                self.slots = event
            case Noted():
                self.notes = [*self.notes, event.text][-_NOTES:]
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
        if event.outcome == "failed":
            self.failed.append(event)
        if event.outcome == "built":
            self._lasted.setdefault(_stage(event.job), []).append(event.seconds)

    @property
    def ended(self) -> int:
        return sum(self.outcomes.values())

    def remaining(self, now: float) -> float | None:
        """Seconds that are left, going by how long jobs lasted; None while nobody knows."""
        if not self.began or not self.outcomes["built"]:
            return None
        left = self.began.needed - self.ended
        share = now / max(1, self.ended)
        known = [self._left(job, now) for job in self.running.values()]
        return max([left * share, *(seconds for seconds in known if seconds is not None)])

    def _left(self, job: Running, now: float) -> float | None:
        """How long a running job will go on."""
        lasted = self._lasted.get(_stage(job.job))
        usual = sum(lasted) / len(lasted) if lasted else job.expected
        if job.progress and job.progress[0]:
            done, total = job.progress
            return (now - job.began) * (total - done) / done
        return max(0.0, usual - (now - job.began)) if usual else None


def _stage(identifier: str) -> str:
    return identifier.partition(":")[0]


class Picture(NamedTuple):
    """A board at one moment; `memory` is that of each running job, as far as it is known."""

    board: Board
    now: float
    memory: dict[str, int] = {}  # noqa: RUF012 - never changed

    def __rich__(self) -> RenderableType:
        board, began = self.board, self.board.began
        if began is None:
            return Text("nothing has begun")
        parts: list[RenderableType] = [self._headline(began)]
        if board.running:
            parts.append(self._table())
        hidden = len(board.running) - _SHOWN
        if hidden > 0:
            parts.append(Text(f"and {hidden} more", style="dim"))
        parts += [
            Text(f"note: {note}", style="yellow", overflow="ellipsis") for note in board.notes
        ]
        for ended in board.failed[-_NOTES:]:
            why = ended.why.partition("\n")[0]
            parts.append(Text(f"failed: {why}", style="red"))
        return Group(*parts)

    def _headline(self, began: Began) -> Text:
        board = self.board
        slots = board.slots.allowed if board.slots else began.slots
        text = Text.assemble(
            (began.project, "bold"),
            f"  {board.ended} of {show_count(began.needed, 'job')}",
        )
        if began.cached:
            text.append(f", {began.cached:,} in the store")
        if board.outcomes["failed"]:
            text.append(f", {board.outcomes['failed']} failed", style="bold red")
        text.append(f"  {show_duration(round(self.now))}")
        left = board.remaining(self.now)
        if board.finished:
            return Text(finished_line(board.finished))
        if left is not None:
            text.append(f", about {show_duration(round(left))} left")
        text.append(f"  slots {slots} of {began.slots}" if slots < began.slots else "")
        return text

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        table.add_column(overflow="ellipsis", no_wrap=True, ratio=3)
        table.add_column(overflow="ellipsis", no_wrap=True, ratio=2, style="dim")
        table.add_column(justify="right", no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        for job in list(self.board.running.values())[:_SHOWN]:
            counts = f"{job.progress[0]:,}/{job.progress[1]:,}" if job.progress else ""
            memory = self.memory.get(job.job)
            table.add_row(
                job.job,
                job.step,
                counts,
                show_size(memory) if memory else "",
                show_duration(round(self.now - job.began)),
            )
        return table
