"""Several commands at once, each read line by line."""

import os
import selectors
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchyard.host.fork_server import ForkedProcess, ForkServer
from torchyard.host.process import LineReader
from torchyard.host.process_tree import GRACE, family, kill_all


class PoolEvent(NamedTuple):
    """A line of a command, or its exit: then `code` is not None."""

    key: int
    line: bytes = b""
    code: int | None = None


class _Member(NamedTuple):
    process: ForkedProcess
    reader: LineReader


class Pool(ForkServer):
    """Commands of a fork server that run side by side, known by the caller's numbers."""

    def __init__(self, main: str, prepared: Sequence[str] = ()) -> None:
        super().__init__(main, prepared)
        self._running: dict[int, _Member] = {}
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._running)

    def pids(self) -> list[int]:
        return [member.process.pid for member in list(self._running.values())]

    def begin(self, key: int, argv: Sequence[str], errors: Path, stdin: bytes = b"") -> None:
        """Start a command in a session of its own, so that Ctrl-C does not reach it.

        Its stderr goes to the file `errors`; `stdin` is a few kilobytes at most.
        """
        reading, writing = os.pipe()
        given, giving = os.pipe()
        os.write(giving, stdin)
        os.close(giving)
        with errors.open("wb") as stderr:
            process = self.start(argv, stdin=given, stdout=writing, stderr=stderr.fileno())
        os.close(given)
        os.close(writing)
        self._selector.register(reading, selectors.EVENT_READ, key)
        self._running[key] = _Member(process, LineReader(reading))

    def poll(self, timeout: float) -> Iterator[PoolEvent]:
        """Yield what commands have written, and which have ended; wait if there is nothing yet."""
        for ready, _ in self._selector.select(timeout):
            key: int = ready.data
            process, reader = self._running[key]
            lines, size = reader.read()
            for line in lines:
                yield PoolEvent(key, line)
            if size == 0:
                self._selector.unregister(reader.handle)
                os.close(reader.handle)
                code = process.wait()
                del self._running[key]
                yield PoolEvent(key, code=code)

    def stop(self) -> None:
        """Send SIGTERM to every command."""
        for process, _ in self._running.values():
            process.terminate()

    def end(self) -> None:
        """End every command: SIGTERM, then SIGKILL after the grace period."""
        self.stop()
        until = time.monotonic() + GRACE
        while self._running and time.monotonic() < until:
            for _ in self.poll(0.1):
                pass
        self.kill()

    def kill(self) -> None:
        """Kill every command and all its descendants."""
        for pid in self.pids():
            kill_all(family(pid))
