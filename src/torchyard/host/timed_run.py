"""Running a program that may hang or crash: what it said, and where it was."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchyard.host.child import Child
from torchyard.host.process_tree import family, kill_all, signal_group

_KEPT = 400
"""How many of a program's last lines are kept."""

_LAST_WORDS = 5.0
"""Seconds that a program has to tell where it hangs."""

_DEBUGGERS = (
    ("eu-stack", "-p", "{pid}"),
    ("gdb", "-p", "{pid}", "-batch", "-nx", "-ex", "thread apply all backtrace 20"),
)


_NAMES = {one.value: one.name for one in signal.Signals}
"""Real-time signals have numbers only."""


class TimedRun(NamedTuple):
    """How a program ended. A negative code is the number of the signal that killed it."""

    code: int
    seconds: float
    lines: tuple[str, ...]
    late: bool

    @property
    def signal(self) -> str:
        """The name of the signal that killed it, if one did."""
        if self.code >= 0:
            return ""
        return _NAMES.get(-self.code, f"signal {-self.code}")


def run_with_timeout(  # noqa: PLR0913 - a program, its surroundings, and how long
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    wrapper: Sequence[str] = (),
    is_python: bool = False,
) -> TimedRun:
    """Run a program, and end it with all it started once its time is up.

    `wrapper` is a command that runs the program in turn, and ends as it does. A Python must have
    been started with faulthandler: it is asked for the stacks of its threads before it is killed.
    Of other programs a debugger tells them, if there is one.
    """
    lines: deque[str] = deque(maxlen=_KEPT)
    child = Child([*wrapper, *argv], cwd=cwd, env=env)
    late, over = threading.Event(), threading.Event()

    def stop() -> None:
        late.set()
        started = family(child.pid)[1:]
        pid = started[0].pid if wrapper and started else child.pid
        lines.append(f"-- not done after {seconds:g} s; where it is:")
        if is_python:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGABRT)
            over.wait(_LAST_WORDS)
        else:
            lines.extend(stacks_of(pid))
        kill_all(started)  # what has a session of its own is in no group of ours
        if over.is_set():
            return  # its number may be another's by now
        signal_group(child.pid, signal.SIGKILL)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        child.start()
        ended = child.watch(lines.append)
    except BaseException:
        child.stop()
        raise
    finally:
        over.set()
        timer.cancel()
        timer.join()
    code = ended.code
    if wrapper and code - _BY_SIGNAL in signal.valid_signals():
        code = _BY_SIGNAL - code  # so a wrapper passes on that its program was killed
    return TimedRun(code, ended.seconds, tuple(lines), late.is_set())


_BY_SIGNAL = 128


def stacks_of(pid: int) -> list[str]:
    """Where the threads of a program are, by a debugger, or else by what the kernel tells."""
    for program, *words in _DEBUGGERS:
        found = shutil.which(program)
        if found:
            argv = [found, *(word.format(pid=pid) for word in words)]
            with contextlib.suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    argv, capture_output=True, text=True, errors="replace", check=False, timeout=30
                )
                told = [line for line in done.stdout.splitlines() if line.startswith(_STACK)]
                if told:
                    return told
    return list(_waits_of(pid))


_STACK = ("Thread", "TID", "#")
"""How the lines of debuggers begin that are worth reading."""


def _waits_of(pid: int) -> list[str]:
    """In which function of the kernel each thread waits."""
    told = []
    with contextlib.suppress(OSError):
        for thread in sorted(Path(f"/proc/{pid}/task").iterdir()):
            name = (thread / "comm").read_text(encoding="utf-8", errors="replace").strip()
            place = (thread / "wchan").read_text(encoding="utf-8").strip("0") or "no system call"
            told.append(f"Thread {thread.name} ({name}) in {place}")
    return told
