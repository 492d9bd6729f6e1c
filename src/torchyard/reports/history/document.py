"""What `torchyard history` prints with `--json`."""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from torchyard.insight.history import FigureChange, Jump, compare_rows, find_jumps
from torchyard.insight.history_rows import HistoryRow
from torchyard.reports.document import JsonDocument


class SeriesDocument(JsonDocument, kw_only=True):
    """A job of every release: its runs, the oldest first, and the figures that jumped."""

    series: str
    rows: list[HistoryRow]
    jumps: list[Jump]


class ChangeDocument(JsonDocument, kw_only=True):
    """A figure of two builds; null if a build does not have it."""

    kind: str
    name: str
    before: float | None
    now: float | None


class HistoryDocument(JsonDocument, kw_only=True):
    """`torchyard history --json`: the runs of jobs, and `between` two of them."""

    version: Literal[1] = 1
    store: str
    series: list[SeriesDocument]
    between: list[ChangeDocument]


def history_document(
    store: str, rows: Sequence[HistoryRow], pair: tuple[HistoryRow, HistoryRow] | None = None
) -> HistoryDocument:
    """Describe rows, which are sorted by time, and the difference of a pair of them."""
    ordered = sorted(rows, key=lambda row: row.series)  # keeps the order of time
    found = [(series, list(runs)) for series, runs in groupby(ordered, key=lambda row: row.series)]
    return HistoryDocument(
        store=store,
        series=[
            SeriesDocument(series=series, rows=runs, jumps=find_jumps(runs))
            for series, runs in found
        ],
        between=[_change(one) for one in compare_rows(*pair)] if pair else [],
    )


def _change(one: FigureChange) -> ChangeDocument:
    return ChangeDocument(kind=one.kind, name=one.name, before=one.before, now=one.now)
