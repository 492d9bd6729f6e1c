"""Processes and their descendants: measure their memory; pause, resume and end them."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import psutil  # takes 30 ms to import, which short steps can save

_TICK = 1.0

GRACE = 10.0
"""Seconds between SIGTERM and SIGKILL."""


class LeafProcess(NamedTuple):
    """A process without children below a job's process, such as a compiler.

    `started` orders processes; with the pid it identifies one, even if pids are reused.
    `above` are its ancestors, nearest first, without the job's own process.
    """

    pid: int
    started: float
    memory: int
    cpu: float
    stopped: bool = False
    above: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[int, float]:
        return self.pid, self.started


class _Process(NamedTuple):
    parent: int
    session: int
    leaf: LeafProcess


def family(pid: int) -> list["psutil.Process"]:
    """Return a process and all its descendants; empty if it has ended.

    It is also empty in a sandbox that shows the `/proc` of a container, whose pids differ.
    """
    import psutil  # noqa: PLC0415 - slow to import

    try:
        if (proc := Path("/proc/self")).is_symlink() and str(proc.readlink()) != str(os.getpid()):
            return []
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.Error:
        return []


class FamilyUsage(NamedTuple):
    """The resident bytes and CPU seconds of a process and its descendants.

    Ended descendants count if they were waited for.
    """

    memory: int
    cpu: float


def family_usage(pid: int) -> FamilyUsage:
    """Return the usage of a process and its descendants."""
    memory, cpu = 0, 0.0
    for process in family(pid):
        with suppress(Exception):  # it may have ended meanwhile
            memory += process.memory_info().rss
            cpu += sum(process.cpu_times()[:4])  # its own, and those of ended children
    return FamilyUsage(memory, cpu)


def family_written(pid: int) -> int:
    """Return the bytes that a process and its descendants have written, as far as known."""
    total = 0
    for process in family(pid):
        with suppress(Exception):  # it may have ended meanwhile, and only Linux counts bytes
            total += process.io_counters().write_chars
    return total


@contextmanager
def written_bytes(report: Callable[[int], None], since: int = 0) -> Iterator[None]:
    """Report every second the bytes that this process and its children have written `since`."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_TICK):
            report(family_written(os.getpid()) - since)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def can_run(pid: int) -> bool:
    """Return whether a thread of a process or its descendants runs, or waits for a CPU or disk."""
    for process in family(pid):
        for path in Path(f"/proc/{process.pid}/task").glob("*/stat"):
            with suppress(OSError):  # it may have ended meanwhile
                if path.read_bytes().rpartition(b") ")[2][:1] in (b"R", b"D"):
                    return True
    return False


def family_memory(pid: int) -> int:
    """Return the resident bytes of a process and its descendants."""
    return family_usage(pid).memory


def kill_all(processes: Iterable["psutil.Process"]) -> None:
    """Kill processes in any process group; psutil never kills another process with a reused pid."""
    import psutil  # noqa: PLC0415 - slow to import

    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def resume_family(pid: int) -> None:
    """Send SIGCONT to a process and all its descendants."""
    for process in family(pid):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGCONT)


def end_group(group: int, has_ended: Callable[[], bool]) -> None:
    """End a process group: SIGTERM, then SIGKILL after the grace period."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        signal_group(group, sent)
        until = time.monotonic() + GRACE
        while time.monotonic() < until:
            if has_ended():
                signal_group(group, signal.SIGKILL)  # members that ignored SIGTERM
                return
            time.sleep(0.02)


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if it still exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def find_leaf_processes(roots: Iterable[int], proc: Path = Path("/proc")) -> list[LeafProcess]:
    """Return the childless processes below the roots, oldest first, without the roots.

    Helpers in a root's own session are excluded: if the process that pauses them is killed, a
    root resumes its steps, which have their own sessions, but would wait for a helper forever.
    """
    roots = set(roots)
    if not roots:
        return []
    table = dict(_from_proc(proc) if (proc / "self/stat").exists() else _from_psutil())
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(pid)
    found: dict[int, LeafProcess] = {}
    seen: set[int] = set()
    todo: list[tuple[int, tuple[int, ...]]] = [(root, ()) for root in roots]
    while todo:
        pid, above = todo.pop()
        if pid in seen:
            continue
        seen.add(pid)
        below = children.get(pid, ())
        lead = () if pid in roots else (pid, *above)
        todo.extend((child, lead) for child in below)
        if not below and pid not in roots and table[pid].session not in roots:
            found[pid] = table[pid].leaf._replace(above=above)
    return sorted(found.values(), key=lambda leaf: (leaf.started, leaf.pid))


def peak_memory(pid: int) -> int:
    """Return the peak resident bytes of a process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123 - as below
            _, _, rest = file.read().partition(b"VmHWM:")
    except OSError:
        return 0
    return int(rest.split(maxsplit=1)[0]) * 1024 if rest else 0


def pause(leaf: LeafProcess) -> None:
    _send(leaf, signal.SIGSTOP)


def resume(leaf: LeafProcess) -> None:
    _send(leaf, signal.SIGCONT)


def _send(leaf: LeafProcess, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(leaf.pid, number)


def _from_proc(proc: Path) -> Iterator[tuple[int, _Process]]:
    """Read only one file for each process: this runs several times a second."""
    tick, page = 1 / os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir(proc):  # noqa: PTH208 - a Path for each entry would double the time
        if not name.isdigit():
            continue
        try:
            with open(f"{proc}/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                text = file.read()
        except OSError:
            continue  # ended since
        # The second field is the program's name in parentheses, which may contain anything.
        fields = text[text.rindex(b")") + 2 :].split()
        state, cpu = fields[0], int(fields[11]) + int(fields[12])
        if state not in b"ZX":
            pid, started, memory = int(name), float(fields[19]), int(fields[21]) * page
            leaf = LeafProcess(pid, started, memory, cpu * tick, state in b"Tt")
            yield pid, _Process(int(fields[1]), int(fields[3]), leaf)


def _from_psutil() -> Iterator[tuple[int, _Process]]:
    import psutil  # noqa: PLC0415 - slow to import

    for process in psutil.process_iter():
        with suppress(psutil.Error), process.oneshot():
            status = process.status()
            if status == psutil.STATUS_ZOMBIE:
                continue
            times, memory = process.cpu_times(), process.memory_info().rss
            stopped = status == psutil.STATUS_STOPPED
            cpu = times.user + times.system
            leaf = LeafProcess(process.pid, process.create_time(), memory, cpu, stopped)
            with suppress(ProcessLookupError, PermissionError):
                session = os.getsid(process.pid)
                yield process.pid, _Process(process.ppid(), session, leaf)
