"""A program that is watched while it runs: its lines as they come, and what it costs."""

import contextlib
import marshal
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchyard.errors import HostError

if TYPE_CHECKING:
    import psutil

_GATE = """
import _signal, marshal, os, sys
for ignored in (_signal.SIGPIPE, _signal.SIGXFSZ):  # by Python, and so by what it becomes
    _signal.signal(ignored, _signal.SIG_DFL)
env = marshal.load(sys.stdin.buffer)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.execve(sys.argv[1], sys.argv[1:], env)
"""
"""Becomes a program as soon as it is given an environment; never if who has it was killed."""

_READ = 1 << 16
_SAMPLE = 0.5
"""Seconds between two looks at a program's memory."""

GRACE = 10.0
"""Seconds that a program has to end after it was asked to, before it is killed."""


class Ended(NamedTuple):
    """How a program ended. A negative code is the number of the signal that killed it."""

    code: int
    seconds: float
    cpu: float
    memory: int


class Child:
    """A program in a process group of its own, its two streams as one.

    It waits for `start`, so that its group can be written down first: a program that nobody
    knows of would go on unseen if we were killed.
    """

    def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        name = str(cwd / argv[0]) if "/" in argv[0] else argv[0]
        program = shutil.which(name, path=env.get("PATH", os.defpath))
        if program is None:
            msg = f"`{argv[0]}` is not on the job's PATH"
            raise HostError(msg, hint=f"install it; PATH is {env.get('PATH')}")
        self._env = marshal.dumps(dict(env))
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GATE, program, *argv[1:]],
            cwd=cwd,
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._peak = 0
        self._parent = os.getppid()

    @property
    def pid(self) -> int:
        """Of the program, and of its process group."""
        return self._process.pid

    def start(self) -> None:
        gate = self._process.stdin
        assert gate is not None  # noqa: S101 - it was asked for above
        with contextlib.suppress(BrokenPipeError), gate:  # how it ended, `watch` will tell
            gate.write(self._env)

    def watch(self, on_line: Callable[[str], None]) -> Ended:
        """Hand on each line until the program ends; what it left running does not count."""
        out = self._process.stdout
        assert out is not None  # noqa: S101 - it was asked for above
        rest, status = b"", None
        looked = self._began

        def read(wait: float) -> bytes | None:
            """Hand on what can be read: empty at the end, None if there is nothing yet."""
            nonlocal rest
            if not select.select([out], [], [], wait)[0]:
                return None
            data = os.read(out.fileno(), _READ)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                on_line(_text(line))
            return data

        while status is None:
            data = read(_SAMPLE)
            status = self._reap(block=data == b"")
            if time.monotonic() - looked > _SAMPLE:
                looked = time.monotonic()
                self._peak = max(self._peak, memory_of(self.pid))
                if os.getppid() != self._parent:
                    resume_family(self.pid)  # who paused it is gone
        left = _unread(out.fileno())  # what is said from now on, others say
        while left > 0 and (data := read(0)):
            left -= len(data)
        if rest:
            on_line(_text(rest))
        out.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what it left running could still write
        return status

    def _reap(self, *, block: bool) -> Ended | None:
        pid, status, usage = os.wait4(self.pid, 0 if block else os.WNOHANG)
        if pid == 0:
            return None
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return Ended(
            self._process.returncode,
            time.monotonic() - self._began,
            usage.ru_utime + usage.ru_stime,
            max(self._peak, usage.ru_maxrss * 1024),
        )

    def stop(self) -> None:
        """End the program and all of its group: politely at first."""
        end_group(self.pid, lambda: self._process.poll() is not None)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _unread(pipe: int) -> int:
    """How many bytes lie in a pipe."""
    count: int = struct.unpack("i", ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
    return count


def _text(line: bytes) -> str:
    """A line as it would look at the end: what a progress bar overwrote is gone."""
    return line.decode(errors="replace").rstrip("\r").rpartition("\r")[2]


def end_group(group: int, has_ended: Callable[[], bool]) -> None:
    """End a process group: ask, wait, then insist."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, sent)
        until = time.monotonic() + GRACE
        while time.monotonic() < until:
            if has_ended():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)  # what ignored the request
                return
            time.sleep(0.02)


def memory_of(pid: int) -> int:
    """Bytes of memory that a process and its descendants have now."""
    total = 0
    for process in family(pid):
        with contextlib.suppress(Exception):  # it may have ended meanwhile
            total += process.memory_info().rss
    return total


def family(pid: int) -> list["psutil.Process"]:
    """A process and its descendants: those that it started, and those that they did."""
    import psutil  # noqa: PLC0415 - 30 ms that a step of a moment does not need

    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.Error:
        return []


def kill_all(processes: Iterable["psutil.Process"]) -> None:
    """Kill processes, whatever groups they are in; never another one that has got a number."""
    import psutil  # noqa: PLC0415 - as above

    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def resume_family(pid: int) -> None:
    """Let a process and all its descendants go on that were paused."""
    for process in family(pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGCONT)


def replace_process(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
    """Become another program, in a terminal that is the caller's."""
    os.chdir(cwd)
    os.execvpe(argv[0], list(argv), dict(env))  # noqa: S606 - that is the point
