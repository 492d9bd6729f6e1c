"""Figures from run to run, for people."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType

from torchyard.insight.history import Jump, kind_and_name
from torchyard.insight.history_table import metric_kinds
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.reports.history.document import ChangeDocument, HistoryDocument, SeriesDocument
from torchyard.reports.seconds import show_seconds
from torchyard.reports.tables import and_more, folded, indented, number, table, word
from torchyard.terminal.untrusted import printable

_BARS = "▁▂▃▄▅▆▇█"
_RUNS = 24
_MOST = 5
_LONG = 600
"""Seconds above which times are shown in hours and minutes."""
_DIGITS = 10


class Trend(NamedTuple):
    """A figure over the runs of a job; None where a run does not have it."""

    kind: str
    name: str
    values: list[float | None]

    @property
    def title(self) -> str:
        return f"{metric_kinds()[self.kind].title} {self.name}".strip()

    @property
    def last(self) -> float:
        return next((value for value in reversed(self.values) if value is not None), 0.0)


def trends(series: SeriesDocument) -> list[Trend]:
    """Return what is shown of a job: the largest figures of each kind, and what jumped."""
    rows = series.rows[-_RUNS:]
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    every = [
        Trend(*kind_and_name(name), [row.metrics.get(name) for row in rows])
        for name in names
        if kind_and_name(name)[0] in metric_kinds()
    ]
    jumped = {(jump.kind, jump.name) for jump in series.jumps}
    shown = []
    for kind, rule in metric_kinds().items():
        own = sorted((one for one in every if one.kind == kind), key=lambda one: -one.last)
        most = 0 if rule.relative else _MOST
        shown += [o for n, o in enumerate(own) if n < most or (o.kind, o.name) in jumped]
    return shown


def show_metric(kind: str, value: float | None) -> str:
    """Return a figure with its unit; `none` if there is none."""
    if value is None:
        return "none"
    match metric_kinds()[kind].unit:
        case "seconds":
            return show_seconds(value) if value < _LONG else show_duration(value)
        case "bytes":
            return show_size(int(value))
        case "percent":
            return f"{value:.0f} %"
        case "count":
            return f"{value:,.0f}"


def show_difference(kind: str, before: float | None, now: float | None) -> str:
    """Return by how much a figure changed, with a sign."""
    change = (now or 0) - (before or 0)
    return f"{'+' if change >= 0 else '-'}{show_metric(kind, abs(change))}"


def sparkline(values: Sequence[float | None]) -> str:
    """Return a line of bars, from the least value to the largest; blanks where there is none."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(
        " " if value is None else _BARS[round((value - low) * scale)] for value in values
    )


def jump_sentence(jump: Jump) -> str:
    """Return what jumped, from what to what."""
    title = f"{metric_kinds()[jump.kind].title} {jump.name}".strip()
    before, now = (show_metric(jump.kind, value) for value in (jump.before, jump.now))
    ratio = f", {jump.now / jump.before:.1f}×" if jump.before and jump.now else ""
    change = show_difference(jump.kind, jump.before, jump.now)
    return f"{title}: {before}, then {now} ({change}{ratio})"


def jump_run(jump: Jump) -> str:
    """Return the run of a jump, and the range of commits in which it happened."""
    run = f"{jump.release}, {jump.started}, {jump.fingerprint[:_DIGITS]}"
    if not jump.commit or jump.commit == jump.earlier:
        return f"{run}, of the same source" if jump.commit else run
    return f"{run}, commits {jump.earlier[:_DIGITS]}..{jump.commit[:_DIGITS]}"


def history_report(document: HistoryDocument) -> RenderableType:
    """Show the trend of each job, its jumps, and two builds side by side."""
    return Group(*_parts(document))


def _parts(document: HistoryDocument) -> Iterator[RenderableType]:
    if document.between:
        yield _between(document.between)
        return
    followed = [series for series in document.series if len(series.rows) > 1]
    for series in followed:
        yield indented(f"{series.series}: {show_count(len(series.rows), 'run')}", 0, style="bold")
        yield _trends(trends(series))
        yield from _jumps(series.jumps)
        yield ""
    once = len(document.series) - len(followed)
    if once:
        yield indented(f"{show_count(once, 'job')} ran once only", 0, style="dim")


def _trends(shown: Sequence[Trend]) -> RenderableType:
    rows = (
        [printable(one.title), sparkline(one.values), *map(show_metric, [one.kind] * 2, _ends(one))]
        for one in shown
    )
    return table([folded("figure"), word("runs"), number("first"), number("last")], rows)


def _ends(one: Trend) -> tuple[float | None, float | None]:
    return one.values[0], one.values[-1]


def _jumps(jumps: Sequence[Jump], most: int = 20) -> Iterator[RenderableType]:
    for jump in jumps[-most:]:
        yield indented(jump_sentence(jump), 2, style="yellow")
        yield indented(jump_run(jump), 4, style="dim")
    yield from and_more(len(jumps) - most, 2)


def _between(changes: Sequence[ChangeDocument]) -> RenderableType:
    rows = (
        [
            printable(f"{metric_kinds()[one.kind].title} {one.name}".strip()),
            show_metric(one.kind, one.before),
            show_metric(one.kind, one.now),
            show_difference(one.kind, one.before, one.now) if one.before != one.now else "same",
        ]
        for one in changes
    )
    return table([folded("figure"), number("before"), number("now"), number("change")], rows)
