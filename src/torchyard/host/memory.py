"""Available memory, limited by the machine or by a cgroup.

/proc/meminfo ignores a container's limit: a build that trusts it is killed while
most of the machine's memory is free.
"""

from pathlib import Path
from typing import NamedTuple

import psutil

from torchyard.host.cgroups import SYSTEM, ControlGroup, control_groups
from torchyard.host.cgroups import read_kernel_file as _text


class Memory(NamedTuple):
    """Available and total bytes, and memory pressure (PSI avg10).

    `pressure` is the percentage of the last ten seconds in which a task was stalled on
    memory, or None if the kernel does not report it.
    """

    available: int
    total: int
    pressure: float | None = None


class _Names(NamedTuple):
    """The file names of a cgroup version."""

    limits: tuple[str, ...]
    usage: str
    reclaimable: str


_V1 = _Names(("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file")
# Above memory.high the kernel throttles processes almost to a halt, so it is a limit, too.
_V2 = _Names(("memory.max", "memory.high"), "memory.current", "inactive_file")


def read_memory(root: Path = SYSTEM) -> Memory:
    """Return the tightest limit of the machine and of every cgroup that contains this process.

    `root` is the directory with proc and sys; tests pass recorded ones.
    """
    available, total = _of_machine(root / "proc/meminfo")
    pressures = [_pressure(root / "proc/pressure/memory")]
    for group in control_groups("memory", root):
        pressures.append(_pressure(group.folder / "memory.pressure"))
        if room := _of_group(group):
            available, total = min(available, room.available), min(total, room.total)
    pressure = max((found for found in pressures if found is not None), default=None)
    return Memory(max(available, 0), total, pressure)


def limiting_file(root: Path = SYSTEM) -> Path | None:
    """Return the file of the cgroup with the lowest memory limit, or None."""
    limits: dict[int, Path] = {}
    for group in control_groups("memory", root):
        for name in _names(group).limits:
            limit = group.read(name)
            if limit.isdigit() and int(limit) < _of_machine(root / "proc/meminfo")[1]:
                limits.setdefault(int(limit), group.folder / name)
    return limits[min(limits)] if limits else None


def _of_machine(meminfo: Path) -> tuple[int, int]:
    values = {words[0]: int(words[1]) * 1024 for words in _lines(meminfo)}
    if "MemAvailable:" in values:
        return values["MemAvailable:"], values["MemTotal:"]
    machine = psutil.virtual_memory()
    return machine.available, machine.total


def _names(group: ControlGroup) -> _Names:
    return _V2 if group.unified else _V1


def _of_group(group: ControlGroup) -> Memory | None:
    names = _names(group)
    limits = [int(limit) for limit in map(group.read, names.limits) if limit.isdigit()]
    usage = group.read(names.usage)
    if not limits or not usage:
        return None
    statistics = {words[0]: int(words[1]) for words in _lines(group.folder / "memory.stat")}
    limit = min(limits)
    return Memory(limit - int(usage) + statistics.get(names.reclaimable, 0), limit)


def _pressure(path: Path) -> float | None:
    for kind, *averages in _lines(path):
        if kind == "some":
            return float(averages[0].removeprefix("avg10="))
    return None


def _lines(path: Path) -> list[list[str]]:
    return [line.split() for line in _text(path).splitlines()]
