"""Ctrl-C and SIGTERM."""

import signal
import sys
from types import FrameType
from typing import Self

TERMINATED = 128 + signal.SIGTERM


class StopCounter:
    """Counts SIGINT and SIGTERM instead of ending at once."""

    def __init__(self) -> None:
        self.count = 0
        self._before = {number: signal.getsignal(number) for number in _NUMBERS}

    def __enter__(self) -> Self:
        for number in _NUMBERS:
            signal.signal(number, self._count)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _count(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


_NUMBERS = (signal.SIGINT, signal.SIGTERM)


def exit_on_sigterm() -> None:
    """Exit on SIGTERM by unwinding, to stop child processes; ignore further SIGTERMs."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(TERMINATED)

    signal.signal(signal.SIGTERM, leave)
