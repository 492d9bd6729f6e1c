"""A build as a trace that Chrome's and Perfetto's viewers show."""

import heapq
from collections.abc import Iterator

import msgspec

from torchyard.host.own_files import WRITTEN
from torchyard.reports.timings.document import TimingsDocument, UnitDocument

_MICROSECONDS = 1_000_000


def timings_trace(document: TimingsDocument) -> bytes:
    """Write the trace: a row for each compile slot, and all runs of ninja after one another."""
    events = [
        {
            "name": unit.name.rpartition("/")[2],
            "cat": unit.target,
            "ph": "X",
            "pid": 1,
            "tid": lane,
            "ts": round(begin * _MICROSECONDS),
            "dur": round((unit.end - unit.begin) * _MICROSECONDS),
            "args": {"output": unit.name, "target": unit.target, "memory": unit.memory},
        }
        for unit, begin, lane in lanes(document)
    ]
    whole = {"generator": WRITTEN, "displayTimeUnit": "ms", "traceEvents": events}
    return msgspec.json.encode(whole)


def lanes(document: TimingsDocument) -> Iterator[tuple[UnitDocument, float, int]]:
    """Yield the commands with their begin in the whole build, and the slot that each was in."""
    offset = 0.0
    runs: list[list[UnitDocument]] = [[] for _ in document.runs]
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
