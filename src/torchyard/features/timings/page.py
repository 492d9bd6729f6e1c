"""The time of a build as a self-contained page, and as a trace in Chrome's format."""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from torchyard.features.timings.report import TimingsReport
from torchyard.host.own_files import WRITTEN
from torchyard.insight.build_record import Unit
from torchyard.model.quantity import show_duration, show_seconds, show_size
from torchyard.reports.templates import Filters, render_template

_WIDTH, _ROW, _GAP = 1200, 18, 3
_THIN = 0.6
_MOST = 4000
"""Narrower commands (in pixels) are combined, and further ones if bars are too many."""
_COLOURED = 7
"""The most targets with separate colours."""
_LISTED = 25
_LABEL = 40
"""The width of a mark's text: marks nearer to the end have none."""
_MINUTE = 60
_MICROSECONDS = 1_000_000


class Bar(NamedTuple):
    """A command in the timeline, or several consecutive short ones."""

    colour: int
    x: float
    y: int
    width: float
    title: str


class Tick(NamedTuple):
    """A mark on the time axis."""

    x: float
    words: str


TIMINGS_FILTERS: Filters = {
    "duration": show_duration,
    "seconds": show_seconds,
    "size": show_size,
}
"""Filters of the template `timings_part.html`."""


def timings_html(document: TimingsReport) -> str:
    """Write the page."""
    return render_template("timings.html", TIMINGS_FILTERS, **timings_values(document))


def timings_values(document: TimingsReport) -> dict[str, object]:
    """Return the values of the template `timings_part.html`."""
    placed = list(_lanes(document))
    rows = 1 + max((lane for _, _, lane in placed), default=0)
    colours = {target.name: n for n, target in enumerate(document.targets[:_COLOURED])}
    return {
        "document": document,
        "bars": list(_bars(placed, document.seconds, colours)),
        "ticks": list(_ticks(document.seconds)),
        "legend": list(colours),
        "slowest": document.slowest(_LISTED),
        "heaviest": document.heaviest(_LISTED),
        "width": _WIDTH,
        "row": _ROW,
        "height": rows * (_ROW + _GAP),
    }


def _bars(
    placed: Sequence[tuple[Unit, float, int]], seconds: float, colours: dict[str, int]
) -> Iterator[Bar]:
    scale = _WIDTH / seconds if seconds else 1.0
    rows = 1 + max((lane for _, _, lane in placed), default=0)
    least = max(_THIN, rows * _WIDTH / _MOST)
    thin: dict[int, list[tuple[Unit, float]]] = {}
    for unit, begin, lane in placed:
        colour = colours.get(unit.target, _COLOURED)
        width = unit.seconds * scale
        together = thin.setdefault(lane, [])
        if together and (width >= least or begin - together[-1][1] > least / scale):
            yield _together(together, lane, scale, colours)
            together.clear()
        if width >= least:
            title = f"{unit.name}, {unit.target}: {show_seconds(unit.seconds)}"
            if unit.memory is not None:
                title += f", {show_size(unit.memory)}"
            yield _bar(colour, begin * scale, lane, width, title)
            continue
        together.append((unit, begin))
        first = together[0][1]
        if (begin + unit.seconds - first) * scale >= least:
            yield _together(together, lane, scale, colours)
            together.clear()
    for lane, together in thin.items():
        if together:
            yield _together(together, lane, scale, colours)


def _together(
    units: list[tuple[Unit, float]], lane: int, scale: float, colours: dict[str, int]
) -> Bar:
    first, (last, begin) = units[0][1], units[-1]
    end = begin + last.seconds
    title = f"{len(units):,} short commands" if len(units) > 1 else last.name
    width = max((end - first) * scale, _THIN)
    targets = {unit.target for unit, _ in units}
    colour = colours.get(targets.pop(), _COLOURED) if len(targets) == 1 else _COLOURED
    return _bar(colour, first * scale, lane, width, title)


def _bar(colour: int, x: float, lane: int, width: float, title: str) -> Bar:
    return Bar(colour, round(x, 2), lane * (_ROW + _GAP), round(width, 2), title)


def _ticks(seconds: float) -> Iterator[Tick]:
    """Yield about eight marks at round times."""
    steps = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 4 * 3600)
    step = next((step for step in steps if seconds / step <= 8), 24 * 3600)  # noqa: PLR2004
    for number in range(int(seconds // step) + 1):
        at = number * step
        x = round(at / seconds * _WIDTH, 1) if seconds else 0.0
        words = f"{at} s" if step < _MINUTE else show_duration(at)
        yield Tick(x, words if x < _WIDTH - _LABEL else "")


def timings_trace(document: TimingsReport) -> bytes:
    """Write the trace: a row for each compile slot, with all runs of ninja in order."""
    events = [
        {
            "name": unit.name.rpartition("/")[2],
            "cat": unit.target,
            "ph": "X",
            "pid": 1,
            "tid": lane,
            "ts": round(begin * _MICROSECONDS),
            "dur": round(unit.seconds * _MICROSECONDS),
            "args": {"output": unit.name, "target": unit.target, "memory": unit.memory},
        }
        for unit, begin, lane in _lanes(document)
    ]
    whole = {"generator": WRITTEN, "displayTimeUnit": "ms", "traceEvents": events}
    return msgspec.json.encode(whole)


def _lanes(document: TimingsReport) -> Iterator[tuple[Unit, float, int]]:
    """Yield the commands with their start in the whole build, and their slot."""
    offset = 0.0
    runs: list[list[Unit]] = [[] for _ in document.runs]
    for unit in document.units:
        runs[unit.run].append(unit)
    for units, seconds in zip(runs, document.runs, strict=True):
        units.sort(key=lambda unit: (unit.begin, unit.end))
        free: list[int] = []
        busy: list[tuple[float, int]] = []
        count = 0
        for unit in units:
            while busy and busy[0][0] <= unit.begin:
                heapq.heappush(free, heapq.heappop(busy)[1])
            if not free:
                heapq.heappush(free, count)
                count += 1
            lane = heapq.heappop(free)
            heapq.heappush(busy, (unit.end, lane))
            yield unit, offset + unit.begin, lane
        offset += seconds
