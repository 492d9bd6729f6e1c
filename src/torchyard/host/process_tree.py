"""The processes at the tips of our jobs' trees: the compilers, and whatever else does the work."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil


class Worker(NamedTuple):
    """A process without children, somewhere below a job's process.

    `started` only orders workers and, together with the pid, tells one from a later namesake.
    """

    pid: int
    started: float
    memory: int
    cpu: float
    stopped: bool = False


class _Process(NamedTuple):
    parent: int
    session: int
    worker: Worker


def find_workers(roots: Iterable[int], proc: Path = Path("/proc")) -> list[Worker]:
    """Find all workers below these processes, oldest first; a root itself is none.

    Nor are helpers that a root runs in its own session. Should who pauses workers be killed, a
    root lets its steps go on, which have other sessions, and would wait for a helper forever.
    """
    roots = set(roots)
    if not roots:
        return []
    table = dict(_from_proc(proc) if (proc / "self/stat").exists() else _from_psutil())
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(pid)
    found: dict[int, Worker] = {}
    seen: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid in seen:
            continue
        seen.add(pid)
        below = children.get(pid, ())
        todo.extend(below)
        if not below and pid not in roots and table[pid].session not in roots:
            found[pid] = table[pid].worker
    return sorted(found.values(), key=lambda worker: (worker.started, worker.pid))


def pause(worker: Worker) -> None:
    _send(worker, signal.SIGSTOP)


def resume(worker: Worker) -> None:
    _send(worker, signal.SIGCONT)


def _send(worker: Worker, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(worker.pid, number)


def _from_proc(proc: Path) -> Iterator[tuple[int, _Process]]:
    """Read everything from one file for each process: this runs several times a second."""
    tick, page = 1 / os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir(proc):  # noqa: PTH208 - a Path for each entry would double the time
        if not name.isdigit():
            continue
        try:
            with open(f"{proc}/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                text = file.read()
        except OSError:
            continue  # ended since
        # The second field is the program's name in parentheses, and may hold anything.
        fields = text[text.rindex(b")") + 2 :].split()
        state, cpu = fields[0], int(fields[11]) + int(fields[12])
        if state not in b"ZX":
            pid, started, memory = int(name), float(fields[19]), int(fields[21]) * page
            worker = Worker(pid, started, memory, cpu * tick, state in b"Tt")
            yield pid, _Process(int(fields[1]), int(fields[3]), worker)


def _from_psutil() -> Iterator[tuple[int, _Process]]:
    for process in psutil.process_iter():
        with suppress(psutil.Error), process.oneshot():
            status = process.status()
            if status == psutil.STATUS_ZOMBIE:
                continue
            times, memory = process.cpu_times(), process.memory_info().rss
            stopped = status == psutil.STATUS_STOPPED
            cpu = times.user + times.system
            worker = Worker(process.pid, process.create_time(), memory, cpu, stopped)
            with suppress(ProcessLookupError, PermissionError):
                session = os.getsid(process.pid)
                yield process.pid, _Process(process.ppid(), session, worker)
