"""Which process a number means: numbers are used again, and count in one container only."""

import os
import time
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether a process of this machine exists; a negative number means a whole group."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True


def group_is_running(group: int) -> bool:
    """Return whether some process of a process group exists."""
    return is_running(-group)


def boot_id() -> str:
    """Return what the kernel calls the time since it was started."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _system() -> str:
    """Return the boot and the PID namespace in which this process's numbers count."""
    return f"{boot_id()}/{Path('/proc/self/ns/pid').readlink()}"


def process_birth(pid: int) -> str:
    """Return the system and the time in which a process started; no two processes share both."""
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
    """Return whether a number still means the process with this birth, or its process group."""
    return process_birth(pid) in {born, f"{born.partition(' ')[0]} "}
