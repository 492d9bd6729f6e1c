"""A program that is watched while it runs: its lines as they come, and its usage."""

import contextlib
import marshal
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchyard.errors import HostError
from torchyard.host.process import LineReader, hand_over, unread_bytes, with_variables
from torchyard.host.process_tree import end_group, family_usage, resume_family, signal_group

if TYPE_CHECKING:
    from torchyard.model.config import SandboxKind

_GATE = """
import _signal, marshal, os, sys
for ignored in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, also across exec
    _signal.signal(ignored, _signal.SIG_DFL)
env = marshal.load(sys.stdin.buffer)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.execve(sys.argv[1], sys.argv[1:], env)
"""
"""Execs the program once its environment arrives on stdin; exits if the parent dies first."""

_LONGEST = 1 << 20
"""Bytes after which a line is split."""

_SAMPLE = 0.5
"""Seconds between two samples of a program's memory."""


class Sample(NamedTuple):
    """The usage of a program and its descendants so far: seconds, CPU seconds, peak bytes."""

    seconds: float
    cpu: float
    memory: int


class Exit(NamedTuple):
    """How a program ended. A negative code is the number of the signal that killed it."""

    code: int
    seconds: float
    cpu: float
    memory: int

    @property
    def used(self) -> Sample:
        return Sample(self.seconds, self.cpu, self.memory)


class Child:
    """A program in a process group of its own, with stdout and stderr in one pipe.

    It does not run before `start`, so that its process group can be recorded first. If we are
    killed, the next run finds the program and ends it.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        sandbox: "SandboxKind" = "none",
    ) -> None:
        """Prepare a program; with a sandbox, `argv` runs bwrap, and `env` is for its program."""
        handles: list[int] = []
        if sandbox != "none":
            argv, handles = with_variables(argv, env, sandbox)
            env = {}
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
            pass_fds=handles,
        )
        for handle in handles:
            os.close(handle)
        self._peak = 0
        self._cpu = 0.0  # bubblewrap does not wait for its program, so the kernel adds up nothing
        self._parent = os.getppid()

    @property
    def pid(self) -> int:
        """The pid of the program and of its process group."""
        return self._process.pid

    @property
    def sample(self) -> Sample:
        """The last sample of its usage."""
        return Sample(time.monotonic() - self._began, self._cpu, self._peak)

    def start(self) -> None:
        hand_over(self._process, self._env)

    def watch(
        self, on_line: Callable[[str], None], on_sample: Callable[[], None] = lambda: None
    ) -> Exit:
        """Pass each line to `on_line` until the program ends, then kill processes it left running.

        `on_sample` is called for each new `sample`.
        """
        out = self._process.stdout
        assert out is not None  # noqa: S101 - it is a pipe
        reader = LineReader(out.fileno(), _LONGEST)
        ended = None
        sampled = self._began

        def read(wait: float) -> int | None:
            """Pass on available output; return its size, or None if there is none yet."""
            if not select.select([out], [], [], wait)[0]:
                return None
            lines, size = reader.read()
            for line in lines:
                on_line(_text(line))
            return size

        while ended is None:
            ended = self._reap(block=read(_SAMPLE) == 0)
            if time.monotonic() - sampled > _SAMPLE:
                sampled = time.monotonic()
                used = family_usage(self.pid)
                self._peak = max(self._peak, used.memory)
                self._cpu = max(self._cpu, used.cpu)
                on_sample()
                if os.getppid() != self._parent:
                    resume_family(self.pid)  # the process that paused it is gone
        left = unread_bytes(out.fileno())  # later output is from other processes
        while left > 0 and (size := read(0)):
            left -= size
        if reader.rest:
            on_line(_text(reader.rest))
        out.close()
        signal_group(self.pid, signal.SIGKILL)  # processes it left could still write files
        return ended

    def _reap(self, *, block: bool) -> Exit | None:
        pid, status, usage = os.wait4(self.pid, 0 if block else os.WNOHANG)
        if pid == 0:
            return None
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return Exit(
            self._process.returncode,
            time.monotonic() - self._began,
            max(self._cpu, usage.ru_utime + usage.ru_stime),
            max(self._peak, usage.ru_maxrss * 1024),
        )

    def stop(self) -> None:
        """End the program and all of its group: SIGTERM first."""
        end_group(self.pid, lambda: self._process.poll() is not None)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _text(line: bytes) -> str:
    """Decode a line as a terminal finally shows it, without overwritten progress bars."""
    return line.decode(errors="replace").rstrip("\r").rpartition("\r")[2]
