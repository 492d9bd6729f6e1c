"""Run a program that may hang or crash, with its last lines and the stacks of its threads."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchyard.host.child import Child
from torchyard.host.process_tree import can_run, family, family_usage, kill_all, signal_group

_KEPT = 400
"""The number of a program's last lines to keep."""

_STACK_SECONDS = 5.0
"""Seconds for a program to print its stacks after SIGABRT."""

_TICK = 0.5
"""Seconds between two checks of a running program."""

_PATIENCE = 10
"""A program ends after this multiple of its time limit, even if the machine never ran it."""

_DEBUGGERS = (
    ("eu-stack", "-p", "{pid}"),
    ("gdb", "-p", "{pid}", "-batch", "-nx", "-ex", "thread apply all backtrace 20"),
)


_NAMES = {Signal.value: Signal.name for Signal in signal.Signals}
"""Names of signals; real-time signals have none."""


class TimedRun(NamedTuple):
    """How a program ended. A negative code is the number of the signal that killed it.

    A `late` program was ended. `waited` are the seconds in which it was ready, but the machine was
    busy; a `starved` one was ended before it had its time.
    """

    code: int
    seconds: float
    lines: tuple[str, ...]
    late: bool
    starved: bool = False
    cpu: float = 0.0
    waited: float = 0.0

    @property
    def signal(self) -> str:
        """The name of the signal that killed it, or ""."""
        if self.code >= 0:
            return ""
        return _NAMES.get(-self.code, f"signal {-self.code}")


def run_with_timeout(  # noqa: PLR0913 - a program, its environment, and its limits
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    wrapper: Sequence[str] = (),
    is_python: bool = False,
) -> TimedRun:
    """Run a program, and kill it with all its descendants after `seconds`.

    Time in which it is ready to run, but the machine is busy, does not count.

    `wrapper` is a command that runs the program and passes its exit code on. Python must run with
    faulthandler: SIGABRT makes it print the stacks of its threads. A debugger, if installed, prints
    those of other programs.
    """
    lines: deque[str] = deque(maxlen=_KEPT)
    child = Child([*wrapper, *argv], cwd=cwd, env=env)
    late, over = threading.Event(), threading.Event()
    waited, starved = 0.0, False

    def watch() -> None:
        nonlocal waited, starved
        began = before = time.monotonic()
        cpu = 0.0
        while not over.wait(min(_TICK, seconds / 4)):
            now, used, runs = time.monotonic(), family_usage(child.pid).cpu, can_run(child.pid)
            waited += max(0.0, now - before - max(0.0, used - cpu)) if runs else 0.0
            before, cpu = now, max(cpu, used)
            starved = now - began >= seconds * _PATIENCE
            if starved or now - began - waited >= seconds:
                stop()
                return

    def stop() -> None:
        late.set()
        started = family(child.pid)[1:]
        pid = started[0].pid if wrapper and started else child.pid
        lines.append(f"-- not done after {seconds:g} s; where it is:")
        if is_python:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGABRT)
            over.wait(_STACK_SECONDS)
        else:
            lines.extend(thread_stacks(pid))
        kill_all(started)  # descendants with their own sessions are not in its group
        if over.is_set():
            return  # its pid may belong to another process by now
        signal_group(child.pid, signal.SIGKILL)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        child.start()
        ended = child.watch(lines.append)
    except BaseException:
        child.stop()
        raise
    finally:
        over.set()
        watcher.join()
    code = ended.code
    if wrapper and code - _BY_SIGNAL in signal.valid_signals():
        code = _BY_SIGNAL - code  # wrappers report a killed program as 128 + signal
    is_late = late.is_set()
    return TimedRun(code, ended.seconds, tuple(lines), is_late, starved, ended.cpu, waited)


_BY_SIGNAL = 128


def thread_stacks(pid: int) -> list[str]:
    """Return the stacks of a program's threads from a debugger, else from the kernel."""
    for program, *words in _DEBUGGERS:
        found = shutil.which(program)
        if found:
            argv = [found, *(word.format(pid=pid) for word in words)]
            with contextlib.suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    argv, capture_output=True, text=True, errors="replace", check=False, timeout=30
                )
                stacks = [line for line in done.stdout.splitlines() if line.startswith(_STACK)]
                if stacks:
                    return stacks
    return list(_waits_of(pid))


_STACK = ("Thread", "TID", "#")
"""Prefixes of the useful lines in a debugger's output."""


def _waits_of(pid: int) -> list[str]:
    """Return the kernel function in which each thread waits."""
    waits = []
    with contextlib.suppress(OSError):
        for thread in sorted(Path(f"/proc/{pid}/task").iterdir()):
            name = (thread / "comm").read_text(encoding="utf-8", errors="replace").strip()
            call = (thread / "wchan").read_text(encoding="utf-8").strip("0") or "no system call"
            waits.append(f"Thread {thread.name} ({name}) in {call}")
    return waits
