"""A finished build: its commands, their times, and their dependencies."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from torchyard.errors import BuildError, UsageError
from torchyard.insight.ninja_file import Edge, read_ninja_file
from torchyard.insight.ninja_log import LogEntry, read_ninja_log
from torchyard.insight.schedule import Work, critical_path, makespan
from torchyard.model.unit_usage import UNITS_FILE, UnitUsage, decode_units
from torchyard.model.values import Reported

BUILD_FILE = "build.ninja"
LOG = ".ninja_log"
_TARGET_FOLDER = re.compile(r"(?:^|/)CMakeFiles/([^/]+)\.dir/")
_TARGET_RULE = re.compile(r"^[A-Z]+_(?:[A-Z]+_)+_([\w.-]+?)(?:_unscanned)?(?:_[A-Za-z]*)?$")
_ENCODED = re.compile(r"\.([0-9a-f]{2})")
"""CMake's escape of other characters in rule names."""
_OBJECT = re.compile(r"\.(?:o|obj)$")
OTHERS = "other commands"
_LARGEST = 1 << 28
"""The most bytes to read of a file of ninja; PyTorch's have a tenth."""


class Unit(Reported):
    """A finished command: its output, target, times and memory; None if not measured."""

    name: str
    target: str
    is_compiled: bool
    run: int
    begin: float
    end: float
    memory: int | None = None

    @property
    def seconds(self) -> float:
        return round(self.end - self.begin, 3)


class TargetTime(Reported):
    """A target, and the time of its commands."""

    name: str
    units: int
    seconds: float


def _total(units: Iterable[Unit]) -> float:
    return round(sum(unit.seconds for unit in units), 3)


class BuildRecord:
    """A build's commands, in the order of their ends."""

    def __init__(
        self,
        edges: Sequence[Edge],
        entries: Sequence[LogEntry],
        usage: Mapping[str, UnitUsage] | None = None,
    ) -> None:
        by_output = {output: edge for edge in edges for output in edge.outputs}
        self.units: list[Unit] = []
        self._edges: list[Edge | None] = []
        for entry in entries:
            edge = next((by_output[name] for name in entry.outputs if name in by_output), None)
            self.units.append(_unit(entry, edge, usage or {}))
            self._edges.append(edge)
        self.edges = edges

    @property
    def seconds(self) -> float:
        """The wall-clock time of all runs of ninja."""
        return round(sum(self.run_seconds()), 3)

    def run_seconds(self) -> list[float]:
        """Return the wall-clock time of each run of ninja."""
        ends: dict[int, float] = {}
        for unit in self.units:
            ends[unit.run] = max(ends.get(unit.run, 0.0), unit.end)
        return [ends[run] for run in sorted(ends)]

    @property
    def work(self) -> float:
        """The total time of all commands."""
        return _total(self.units)

    def targets(self) -> list[TargetTime]:
        """Return the time of each target, the longest first."""
        found: dict[str, list[Unit]] = {}
        for unit in self.units:
            found.setdefault(unit.target, []).append(unit)
        times = (
            TargetTime(name, sum(u.is_compiled for u in units), _total(units))
            for name, units in found.items()
        )
        return sorted(times, key=lambda target: (-target.seconds, target.name))

    def slowest(self, most: int) -> list[Unit]:
        """Return the slowest commands."""
        return sorted(self.units, key=lambda unit: -unit.seconds)[:most]

    @cached_property
    def _work(self) -> Work:
        """The graph of commands; phony edges are replaced by their inputs."""
        numbers = {id(edge): number for number, edge in enumerate(self._edges) if edge is not None}
        makers = {output: edge for edge in self.edges for output in edge.outputs}
        needs = _Needs(makers, numbers)
        return Work(
            tuple(unit.seconds for unit in self.units),
            tuple(needs.of((*edge.inputs, *edge.ordered)) if edge else () for edge in self._edges),
        )

    def with_slots(self, slots: int) -> float:
        """Return the time of the commands with a number of compile slots."""
        return makespan(self._work, slots)

    def critical_path(self) -> list[Unit]:
        """Return the longest chain of commands, each of which needs the previous one."""
        return [self.units[number] for number in critical_path(self._work)]


class _Needs:
    """Finds the commands that make inputs, through edges without commands."""

    def __init__(self, makers: dict[str, Edge], numbers: dict[int, int]) -> None:
        self._makers = makers
        self._numbers = numbers
        self._through: dict[int, frozenset[int]] = {}

    def of(self, inputs: Iterable[str]) -> tuple[int, ...]:
        found: set[int] = set()
        for name in inputs:
            edge = self._makers.get(name)
            if edge is not None:
                found |= self._behind(edge)
        return tuple(sorted(found))

    def _behind(self, edge: Edge) -> frozenset[int]:
        number = self._numbers.get(id(edge))
        if number is not None:
            return frozenset((number,))
        if id(edge) not in self._through:
            self._follow(edge)
        return self._through[id(edge)]

    def _follow(self, edge: Edge) -> None:
        """Follow edges without commands, iteratively: chains may exceed the recursion limit."""
        waiting = [edge]
        while waiting:
            last = waiting[-1]
            inputs = (*last.inputs, *last.ordered)
            if id(last) in self._through:
                self._through[id(last)] = frozenset(self.of(inputs))
                waiting.pop()
            else:
                self._through[id(last)] = frozenset()  # a phony edge may name itself
                needed = (self._makers[name] for name in inputs if name in self._makers)
                waiting += (other for other in needed if not self._is_known(other))

    def _is_known(self, edge: Edge) -> bool:
        return id(edge) in self._numbers or id(edge) in self._through


def read_build(folder: Path) -> BuildRecord:
    """Read the record of a build from its directory."""
    files = [left_by_ninja(folder, name) for name in (BUILD_FILE, LOG)]
    measured = folder / UNITS_FILE
    if measured.is_file() and measured.stat().st_size <= _LARGEST:
        files.append(measured)
    return _last_read(*files, times=tuple(path.stat().st_mtime_ns for path in files))


def read_started_build(folder: Path) -> BuildRecord:
    """Read a build that ninja may not have started."""
    if (folder / LOG).is_file():
        return read_build(folder)
    return BuildRecord(read_edges(folder), [])


@lru_cache(maxsize=1)
def _last_read(
    file: Path,
    log: Path,
    measured: Path | None = None,
    *,
    times: tuple[int, ...],  # noqa: ARG001 - of the files: others are read again
) -> BuildRecord:
    """Cache the last build: graph and timings are often requested for the same one."""
    usage = read_usage(measured) if measured else {}
    return BuildRecord(read_ninja_file(file), read_ninja_log(log), usage)


def read_usage(path: Path) -> dict[str, UnitUsage]:
    """Read the usage of units, by output file; empty if the file is unreadable."""
    try:
        return decode_units(path.read_bytes())
    except OSError:
        return {}


def read_edges(folder: Path) -> list[Edge]:
    """Read the edges of ninja's build file in a directory."""
    return read_ninja_file(left_by_ninja(folder, BUILD_FILE))


def left_by_ninja(folder: Path, name: str) -> Path:
    """Return the path of ninja's file; refuse a missing or huge one."""
    path = folder / name
    if not path.is_file():
        is_planned = name == LOG and (folder / BUILD_FILE).is_file()
        what = "ninja has not run there" if is_planned else "CMake has not made it for ninja"
        hint = "run ninja there" if is_planned else "name a directory made by `cmake -G Ninja`"
        msg = f"`{folder}` has no {name}: {what}"
        raise UsageError(msg, hint=f"{hint}, or name a job of the plan")
    if (size := path.stat().st_size) > _LARGEST:
        msg = f"`{path}` has {size:,} bytes, and {_LARGEST:,} are read at most"
        raise BuildError(msg, hint="`ninja -t recompact` shortens a log that ninja wrote")
    return path


def _unit(entry: LogEntry, edge: Edge | None, usage: Mapping[str, UnitUsage]) -> Unit:
    used = next((usage[output] for output in entry.outputs if output in usage), None)
    name = edge.outputs[0] if edge else entry.outputs[0]
    return Unit(
        name,
        target_of(name, edge.rule if edge else ""),
        is_object(name),
        entry.run,
        entry.begin,
        entry.end,
        used.memory if used else None,
    )


def is_object(output: str) -> bool:
    """Return whether a file is a compiler's output for a unit."""
    return _OBJECT.search(output) is not None


def target_of(output: str, rule: str) -> str:
    """Return a command's target, from CMake's names of folders and rules."""
    if folder := _TARGET_FOLDER.search(output):
        return folder[1]
    named = _TARGET_RULE.match(rule)
    return _ENCODED.sub(lambda code: chr(int(code[1], 16)), named[1]) if named else OTHERS
