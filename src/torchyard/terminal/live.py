"""A board that is redrawn while a build runs."""

import threading
import time
from collections.abc import Callable
from typing import Self

from rich.live import Live

from torchyard.model.event import AnyEvent, Ended, Started
from torchyard.terminal.board import Board, BoardView
from torchyard.terminal.console import console
from torchyard.terminal.events import event_line

_RATE = 4
"""Redraws per second."""


class LiveBoard:
    """A listener that draws a board, with ended jobs above it; `memory_of` takes a pid."""

    def __init__(self, memory_of: Callable[[int], int]) -> None:
        self._memory_of = memory_of
        self.board = Board()
        self._began = time.monotonic()
        self._memory: dict[str, int] = {}
        self._pids: dict[str, int] = {}
        self._ended = threading.Event()
        self._live = Live(
            console=console(talk=True),
            get_renderable=self._picture,
            refresh_per_second=_RATE,
            transient=True,
        )
        self._sampler = threading.Thread(target=self._sample, daemon=True)

    def __call__(self, event: AnyEvent) -> None:
        self.board(event)
        if isinstance(event, Started) and event.pid:
            self._pids[event.job] = event.pid
        if isinstance(event, Ended):
            self._pids.pop(event.job, None)
            self._memory.pop(event.job, None)
            if event.outcome != "skipped":
                line, began = event_line(event) or "", self.board.began
                line = line.replace(f"{began.project}/", "") if began else line
                self._live.console.print(line, overflow="ellipsis", no_wrap=True)

    def _picture(self) -> BoardView:
        return BoardView(self.board, time.monotonic() - self._began, dict(self._memory))

    def _sample(self) -> None:
        while not self._ended.wait(1):
            for job, pid in list(self._pids.items()):
                self._memory[job] = self._memory_of(pid)

    def __enter__(self) -> Self:
        self._live.start()
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._live.stop()
        if self.board.finished:
            self._live.console.print(event_line(self.board.finished))
