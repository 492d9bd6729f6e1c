"""The identity of processes: pids are reused, and valid only in their container."""

import os
import time
from contextlib import suppress
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether a process exists on this machine and has not ended."""
    return _exists(pid) and not _has_ended(str(pid))


def group_is_running(group: int) -> bool:
    """Return whether any process of a process group has not ended."""
    return _exists(-group) and not _has_ended("*", group)


def _exists(pid: int) -> bool:
    """Return whether a process exists; a negative number means a whole group."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True


def _has_ended(names: str, group: int | None = None) -> bool:
    """Return whether processes, or those of a group, are zombies that the parent never reaps.

    The first process of a container is often a program that does not reap its children.
    """
    states = set()
    for path in Path("/proc").glob(f"{names}/stat"):
        with suppress(OSError, ValueError):
            state, _, own_group, *_ = path.read_bytes().rpartition(b")")[2].split()
            if group in (None, int(own_group)):
                states.add(state)
    return bool(states) and states <= {b"Z", b"X"}


def boot_id() -> str:
    """Return the kernel's identifier of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _system() -> str:
    """Return the boot and the PID namespace of this process's pids."""
    return f"{boot_id()}/{Path('/proc/self/ns/pid').readlink()}"


def process_birth(pid: int) -> str:
    """Return the system and start time of a process, which identify it."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return f"{_system()} "
    return f"{_system()} {int(status.rpartition(b')')[2].split()[19])}"


def is_local_birth(born: str) -> bool:
    """Return whether a process was born in this boot and PID namespace."""
    return born.partition(" ")[0] == _system()


def process_age(born: str) -> float:
    """Return how many seconds ago a process of this system was born."""
    ticks = born.partition(" ")[2]
    if not ticks:
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / os.sysconf("SC_CLK_TCK")


def is_same_process(pid: int, born: str) -> bool:
    """Return whether a pid still belongs to the process with this birth, or to its group."""
    return process_birth(pid) in {born, f"{born.partition(' ')[0]} "}
