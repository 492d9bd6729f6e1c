"""Several programs at once, each heard line by line."""

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchyard.host.child import GRACE, family, kill_all


class Heard(NamedTuple):
    """A line of a program, or how it ended: then `code` is not None."""

    key: int
    line: bytes = b""
    code: int | None = None


class Pool:
    """Programs that run side by side, known by numbers of the caller's."""

    def __init__(self) -> None:
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._rests: dict[int, bytes] = {}
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._running)

    def pids(self) -> list[int]:
        return [process.pid for process in list(self._running.values())]

    def start(self, key: int, argv: Sequence[str], errors: Path, told: bytes = b"") -> None:
        """Start a program in a session of its own, so that Ctrl-C does not reach it.

        It can read what it is told, a few kilobytes at most, and nobody else can.
        """
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if told else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        assert process.stdout is not None  # noqa: S101 - it was asked for
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError), process.stdin:  # how it ended, it will tell
                process.stdin.write(told)
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, key)
        self._running[key] = process
        self._rests[key] = b""

    def listen(self, timeout: float) -> Iterator[Heard]:
        """Everything that programs say, up to a time at which there was nothing to hear."""
        for ready, _ in self._selector.select(timeout):
            key: int = ready.data
            process = self._running[key]
            assert process.stdout is not None  # noqa: S101
            data = process.stdout.read(1 << 16)
            *lines, self._rests[key] = (self._rests[key] + (data or b"")).split(b"\n")
            for line in lines:
                yield Heard(key, line)
            if data == b"":
                self._selector.unregister(process.stdout)
                process.stdout.close()
                code = process.wait()
                del self._running[key], self._rests[key]
                yield Heard(key, code=code)

    def stop(self) -> None:
        """Ask every program to end."""
        for process in self._running.values():
            process.terminate()

    def end(self) -> None:
        """End every program: ask, wait a while, then insist."""
        self.stop()
        until = time.monotonic() + GRACE
        while self._running and time.monotonic() < until:
            for _ in self.listen(0.1):
                pass
        self.kill()

    def kill(self) -> None:
        """End every program and all that it started, at once."""
        for pid in self.pids():
            kill_all(family(pid))
