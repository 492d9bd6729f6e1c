"""Figures from run to run as one page that stands alone."""

from collections.abc import Sequence

from torchyard.reports.history.document import HistoryDocument
from torchyard.reports.history.text import (
    jump_run,
    jump_sentence,
    show_difference,
    show_metric,
    trends,
)
from torchyard.reports.templates import Filters, render_template

_WIDTH, _HEIGHT = 160, 28


def trend_path(values: Sequence[float | None]) -> str:
    """Return the path of a trend line in SVG; runs without the figure interrupt it."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    across = (_WIDTH - 8) / max(len(values) - 1, 1)
    words, pen = [], "M"
    for number, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        up = (value - low) / (high - low) if high > low else 0.5
        words.append(f"{pen}{4 + number * across:.1f} {_HEIGHT - 4 - up * (_HEIGHT - 8):.1f}")
        pen = "L"
    return " ".join([*words, "h.1"]) if words else ""


HISTORY_FILTERS: Filters = {
    "difference": show_difference,
    "jump_run": jump_run,
    "jump_sentence": jump_sentence,
    "metric": show_metric,
    "trend_path": trend_path,
    "trends": trends,
}
"""What the part `history_part.html` uses."""


def trends_page(document: HistoryDocument) -> str:
    """Write the page."""
    return render_template("history.html", HISTORY_FILTERS, history=document)
