"""Several programs at once, each read line by line."""

import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchyard.host.process import LineReader, hand_over
from torchyard.host.process_tree import GRACE, family, kill_all


class PoolEvent(NamedTuple):
    """A line of a program, or its exit: then `code` is not None."""

    key: int
    line: bytes = b""
    code: int | None = None


class _Member(NamedTuple):
    process: subprocess.Popen[bytes]
    reader: LineReader


class Pool:
    """Programs that run side by side, known by the caller's numbers."""

    def __init__(self) -> None:
        self._running: dict[int, _Member] = {}
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._running)

    def pids(self) -> list[int]:
        return [member.process.pid for member in list(self._running.values())]

    def start(self, key: int, argv: Sequence[str], errors: Path, stdin: bytes = b"") -> None:
        """Start a program in a session of its own, so that Ctrl-C does not reach it.

        Its stderr goes to the file `errors`; `stdin` is a few kilobytes at most.
        """
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        assert process.stdout is not None  # noqa: S101 - it was asked for
        if stdin:
            hand_over(process, stdin)
        self._selector.register(process.stdout, selectors.EVENT_READ, key)
        self._running[key] = _Member(process, LineReader(process.stdout.fileno()))

    def poll(self, timeout: float) -> Iterator[PoolEvent]:
        """Yield what programs have written, and which have ended; wait if there is nothing yet."""
        for ready, _ in self._selector.select(timeout):
            key: int = ready.data
            process, reader = self._running[key]
            lines, size = reader.read()
            for line in lines:
                yield PoolEvent(key, line)
            if size == 0:
                assert process.stdout is not None  # noqa: S101
                self._selector.unregister(process.stdout)
                process.stdout.close()
                code = process.wait()
                del self._running[key]
                yield PoolEvent(key, code=code)

    def stop(self) -> None:
        """Send SIGTERM to every program."""
        for process, _ in self._running.values():
            process.terminate()

    def end(self) -> None:
        """End every program: SIGTERM, then SIGKILL after the grace period."""
        self.stop()
        until = time.monotonic() + GRACE
        while self._running and time.monotonic() < until:
            for _ in self.poll(0.1):
                pass
        self.kill()

    def kill(self) -> None:
        """Kill every program and all its descendants."""
        for pid in self.pids():
            kill_all(family(pid))
