"""Compile slots that builds share: a GNU jobserver over a named fifo.

Every byte in the fifo is a slot. A client (ninja >= 1.13, GNU make >= 4.4) takes one out for
each command that it runs besides its first, which runs on the slot that was taken for it
before the client was started. So builds that share a fifo never run more commands than
there are slots, and no slot is idle while a build has work.
"""

import os
import re
import select
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, Self

from torchyard.errors import HostError
from torchyard.host.process import capture, unread_bytes

_SlotState = Literal["taken", "withheld"]

_TOKEN = b"+"
_AGREEING = 12
"""Consecutive calls that must find slots lost before they are replaced, as a count may be off."""


def makeflags(path: str | Path, *, old_make: bool) -> str:
    """Return the MAKEFLAGS for clients of the fifo at a path.

    Make before 4.4 fails if it is given a fifo. After `--` every make reads it as a
    variable and runs one command at a time, on its job's slot; ninja, gcc and cargo
    find the word at any position.
    """
    return (
        f"-j1 -- --jobserver-auth=fifo:{path}" if old_make else f"-j --jobserver-auth=fifo:{path}"
    )


@cache
def is_old_make(path: str) -> bool:
    """Return whether the make on a PATH can't share slots through a fifo."""
    make = shutil.which("make", path=path)
    if make is None:
        return False
    printed = capture([make, "--version"], cwd=Path.cwd())
    version = re.match(r"GNU Make (\d+)\.(\d+)", printed)
    return version is None or (int(version[1]), int(version[2])) < (4, 4)


class Jobserver:
    """A pool of `count` slots, and the fifo at `path` through which clients share it.

    Each slot has one of four states: free in the fifo, taken by us for a job's first command,
    withheld by us because memory is short, or held by a client. The last can't be counted, so it
    is computed from the others.
    """

    def __init__(self, path: Path, count: int) -> None:
        if any(letter.isspace() for letter in str(path)):
            msg = f"the slots' fifo can't be at `{path}`: MAKEFLAGS can't contain white space"
            raise HostError(msg, hint="choose a directory without white space in its name")
        self.path = path.absolute()
        self.count = count
        self._kept: dict[_SlotState, int] = {"taken": 0, "withheld": 0}
        self._missed = 0
        self._lock = threading.Lock()
        self._on_close: Callable[[], None] | None = None
        try:
            os.mkfifo(self.path, 0o600)
            # Open for reading and writing, so that the fifo keeps its tokens without clients.
            self._fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        except OSError as error:
            msg = f"the slots' fifo `{self.path}` can't be made: {error}"
            raise HostError(msg) from error
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._put(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def free(self) -> int:
        """The number of free slots."""
        with self._lock:
            return self._free()

    @property
    def withheld(self) -> int:
        """The number of withheld slots."""
        return self._kept["withheld"]

    def take(self, timeout: float = 0) -> bool:
        """Take a slot for a job that is about to start; wait up to `timeout` seconds.

        After a command, a client returns its slot and takes it again within microseconds:
        polling hardly ever finds it free, waiting gets it after a few commands.
        """
        return self._acquire(1, "taken", timeout) == 1

    def give(self) -> None:
        """Return the slot of an ended job."""
        self._return(1, "taken")

    def withhold(self, wanted: int, timeout: float = 0) -> None:
        """Withhold `wanted` slots from all builds, or as many as are free in time."""
        missing = wanted - self.withheld
        if missing > 0:
            self._acquire(missing, "withheld", timeout)
        else:
            self._return(-missing, "withheld")

    def carve(self, path: Path, count: int, timeout: float = 0) -> "Jobserver | None":
        """Create a smaller pool of slots from this one, to which they return when it closes.

        It is for a job that may use fewer slots. Return None if they are not free in time.
        """
        got = self._acquire(count, "taken", timeout)
        if got < count:
            self._return(got, "taken")
            return None
        carved = Jobserver(path, count)
        carved._on_close = lambda: self._return(count, "taken")
        return carved

    def recover(self, busy: int) -> int:
        """Replace slots lost with killed clients; return how many.

        `busy` is the number of running commands. Clients hold no more slots than that, so
        slots missing beyond it in several consecutive calls are lost; without jobs, at once.
        If a lost slot turns up again, or a client adds slots of its own, they are removed.
        """
        with self._lock:
            held = self.count - self._free() - sum(self._kept.values())
            if held < 0:
                self._get(-held)
            lost = held - busy
            self._missed = self._missed + 1 if lost > 0 else 0
            if lost <= 0 or (self._kept["taken"] and self._missed < _AGREEING):
                return 0
            self._missed = 0
            self._put(lost)
            return lost

    def close(self) -> None:
        """Remove the fifo; running clients finish with the slots they hold."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self.path.unlink(missing_ok=True)
            if self._on_close:
                self._on_close()

    def _acquire(self, count: int, slot: _SlotState, timeout: float) -> int:
        """Take slots out of the fifo, as many as are free in time, and return how many."""
        deadline = time.monotonic() + timeout
        got = 0
        while True:
            with self._lock:
                now = self._get(count - got)
                self._kept[slot] += now
            got += now
            left = deadline - time.monotonic()
            if got == count or left <= 0:
                return got
            self._poll.poll(left * 1000)

    def _return(self, count: int, slot: _SlotState) -> None:
        with self._lock:
            self._kept[slot] -= count
            self._put(count)

    def _free(self) -> int:
        return unread_bytes(self._fd)

    def _get(self, count: int) -> int:
        try:
            return len(os.read(self._fd, count))
        except BlockingIOError:
            return 0

    def _put(self, count: int) -> None:
        with suppress(BlockingIOError):  # a client has filled the fifo; `recover` empties it
            os.write(self._fd, _TOKEN * count)
