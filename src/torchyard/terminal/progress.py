"""Progress of long work: a redrawn line on a terminal, a line per minute elsewhere."""

import os
import sys
import time
from typing import Self

from torchyard.model.quantity import show_size
from torchyard.terminal.console import redraw, say

_INTERVAL = 0.2
"""Seconds between two redraws; shorter work shows none."""

_EVERY = 60.0
"""Seconds between two lines without a terminal."""


class ProgressLine:
    """Shows the finished share of the work, in bytes or another `unit`."""

    def __init__(self, what: str, total: int, unit: str = "") -> None:
        self.what = what
        self.total = total
        self._unit = unit
        self._done = 0
        self._drawn = time.monotonic()
        stream = sys.stderr
        self._live = stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
        self._dirty = False

    def __call__(self, more: int) -> None:
        """Add `more` to the finished work."""
        self._done += more
        now = time.monotonic()
        if now - self._drawn < (_INTERVAL if self._live else _EVERY):
            return
        self._drawn = now
        if self._live:
            self._dirty = True
            redraw(shorten(str(self), os.get_terminal_size(sys.stderr.fileno()).columns))
        else:
            say(str(self))

    def reach(self, done: int) -> None:
        """Set the amount of finished work."""
        self(done - self._done)

    def __str__(self) -> str:
        amount = self.total or self._done
        text = f"{amount:,} {self._unit}" if self._unit else show_size(amount)
        share = f"{min(1, self._done / self.total):4.0%} of " if self.total else ""
        return f"{share}{text}, {self.what}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._dirty:
            redraw("")


def shorten(text: str, room: int) -> str:
    """Shorten a text in the middle: names differ at their ends."""
    if len(text) <= room:
        return text
    front = max(0, (room - 1) // 2)
    return f"{text[:front]}…{text[len(text) - (room - 1 - front) :]}"
