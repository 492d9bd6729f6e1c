"""Start commands without loading their modules again: a process has loaded them, and forks.

The server has one thread. It reads requests from a socket: the words of a command, and its stdin,
stdout, stderr and status pipe. It writes the process number to the status pipe, and later the
exit code. Commands outlive the server, and the server ends with the process that started it.
"""

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn, Self

from torchyard.host.process import LineReader
from torchyard.host.process_tree import GRACE, family, kill_all

_REQUEST = 1 << 17
"""The largest request, in bytes."""

_FILES = 4
_NUMBER = 8
"""Bytes of a process number or an exit code in the status pipe."""


class ForkedProcess:
    """A command started by a fork server."""

    def __init__(self, status: int) -> None:
        self._status = status
        self.pid = self._read()

    def wait(self) -> int:
        """Return the exit code, negative for a signal; -SIGKILL if the server was killed."""
        code = self._read()
        os.close(self._status)
        return code

    def terminate(self) -> None:
        """Send SIGTERM."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def _read(self) -> int:
        data = os.read(self._status, _NUMBER)
        return int.from_bytes(data, signed=True) if data else -signal.SIGKILL


class ForkServer:
    """A process with loaded modules that runs `MODULE:FUNCTION` in forks of itself."""

    def __init__(self, main: str, prepared: Sequence[str] = ()) -> None:
        """`prepared` are modules, or functions `MODULE:FUNCTION` whose results are cached."""
        self._words = (main, *prepared)
        self._socket: socket.socket | None = None

    def start(self, argv: Sequence[str], *, stdin: int, stdout: int, stderr: int) -> ForkedProcess:
        """Start a command in its own session; `argv` is its `sys.argv`."""
        request = json.dumps(list(argv)).encode()
        reading, writing = os.pipe()
        try:
            files = [stdin, stdout, stderr, writing]
            try:
                socket.send_fds(self._connected(), [request], files)
            except BrokenPipeError:  # the server was killed: start another one
                self.close()
                socket.send_fds(self._connected(), [request], files)
        finally:
            os.close(writing)
        return ForkedProcess(reading)

    def close(self) -> None:
        """End the server; running commands continue."""
        if self._socket is not None:
            self._socket.close()
            self._process.wait()
            self._socket = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> socket.socket:
        if self._socket is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), *self._words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            self._socket = ours
        return self._socket


class PoolEvent(NamedTuple):
    """A line of a command, or its exit if `code` is not None."""

    key: int
    line: bytes = b""
    code: int | None = None


class _Member(NamedTuple):
    process: ForkedProcess
    reader: LineReader


class Pool(ForkServer):
    """Concurrent commands of a fork server, identified by the caller's numbers."""

    def __init__(self, main: str, prepared: Sequence[str] = ()) -> None:
        super().__init__(main, prepared)
        self._running: dict[int, _Member] = {}
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._running)

    def pids(self) -> list[int]:
        return [member.process.pid for member in list(self._running.values())]

    def begin(self, key: int, argv: Sequence[str], errors: Path, stdin: bytes = b"") -> None:
        """Start a command in its own session, so that Ctrl-C does not reach it.

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
        """Yield lines and exits of commands; wait if there are none yet."""
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


class _Server:
    """The server process: forks for each request, and reports each fork's exit."""

    def __init__(self, connection: socket.socket, main: Callable[[], object]) -> None:
        self._connection = connection
        self._main = main
        self._status: dict[int, int] = {}

    def serve(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: self._reap())
        while True:
            data, files, _, _ = socket.recv_fds(self._connection, _REQUEST, _FILES)
            if not data:
                return
            # Register a command before it can be reaped: it may end at once.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            *streams, status = files
            pid = os.fork()
            if pid == 0:
                self._run(json.loads(data), streams, status)
            os.write(status, pid.to_bytes(_NUMBER, signed=True))
            self._status[pid] = status
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            for file in streams:
                os.close(file)

    def _reap(self) -> None:
        """Report each ended fork; another SIGCHLD may interrupt this at any line.

        The interrupting call may find no child: one that was reaped here is not yet removed.
        """
        while self._status:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            pipe = self._status.pop(pid)
            with suppress(BrokenPipeError):
                os.write(pipe, os.waitstatus_to_exitcode(status).to_bytes(_NUMBER, signed=True))
            os.close(pipe)

    def _run(self, argv: list[str], streams: Sequence[int], status: int) -> NoReturn:
        """Run the command, in the fork."""
        code = 1
        try:
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            for number, file in enumerate(streams):
                os.dup2(file, number)
            self._connection.close()
            for file in (*streams, status, *self._status.values()):
                os.close(file)
            sys.argv = argv
            self._main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            if isinstance(ended.code, str):
                sys.stderr.write(f"{ended.code}\n")
        except BaseException:  # noqa: BLE001 - like the interpreter
            traceback.print_exc()
        finally:
            with suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)


def _load(name: str) -> Callable[[], object]:
    module, _, function = name.partition(":")
    main: Callable[[], object] = getattr(importlib.import_module(module), function)
    return main


if __name__ == "__main__":
    gc.disable()
    entry = _load(sys.argv[2])
    for prepared in sys.argv[3:]:
        if ":" in prepared:
            _load(prepared)()
        else:
            importlib.import_module(prepared)
    gc.enable()
    gc.freeze()  # forks share the loaded objects, which garbage collection never touches
    _Server(socket.socket(fileno=int(sys.argv[1])), entry).serve()
