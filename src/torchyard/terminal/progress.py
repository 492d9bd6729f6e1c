"""Progress of a long read: one line on a terminal, nothing elsewhere."""

import os
import sys
import time
from typing import Self

from torchyard.terminal.console import redraw

_INTERVAL = 0.2
"""Seconds between two redraws; shorter work is never drawn."""


class ProgressLine:
    """A line with the share of the work that is done."""

    def __init__(self, what: str, total: int) -> None:
        self.what = what
        self.total = total
        self._done = 0
        self._drawn = time.monotonic()
        stream = sys.stderr
        self._visible = stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
        self._dirty = False

    def __call__(self, more: int) -> None:
        """Add `more` to what is done."""
        self._done += more
        now = time.monotonic()
        if self._visible and now - self._drawn >= _INTERVAL:
            self._drawn, self._dirty = now, True
            share = min(1, self._done / max(1, self.total))
            line = f"{share:4.0%} {self.what}"[: os.get_terminal_size(sys.stderr.fileno()).columns]
            redraw(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._dirty:
            redraw("")
