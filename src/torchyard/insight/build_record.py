"""A finished build: its commands with their times, and which of them need which."""

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
"""How CMake writes other characters in names of rules."""
_OBJECT = re.compile(r"\.(?:o|obj)$")
OTHERS = "other commands"
_LARGEST = 1 << 28
"""Bytes of a file of ninja's that are read; those of PyTorch have a tenth."""


class Unit(Reported):
    """A command that was run: what it made, for which target, when, and in how much memory.

    The bytes are None where they were not measured.
    """

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
    """A target, and what its commands took."""

    name: str
    units: int
    seconds: float


def _total(units: Iterable[Unit]) -> float:
    return round(sum(unit.seconds for unit in units), 3)


class BuildRecord:
    """What a build left: its commands, in the order in which they ended."""

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
        """The time of all commands together."""
        return _total(self.units)

    def targets(self) -> list[TargetTime]:
        """Return what each target took, the longest first."""
        found: dict[str, list[Unit]] = {}
        for unit in self.units:
            found.setdefault(unit.target, []).append(unit)
        times = (
            TargetTime(name, sum(u.is_compiled for u in units), _total(units))
            for name, units in found.items()
        )
        return sorted(times, key=lambda target: (-target.seconds, target.name))

    def slowest(self, most: int) -> list[Unit]:
        """Return the commands that took longest."""
        return sorted(self.units, key=lambda unit: -unit.seconds)[:most]

    @cached_property
    def _work(self) -> Work:
        """The commands as a graph; phony edges are followed to what they name."""
        numbers = {id(edge): number for number, edge in enumerate(self._edges) if edge is not None}
        makers = {output: edge for edge in self.edges for output in edge.outputs}
        needs = _Needs(makers, numbers)
        return Work(
            tuple(unit.seconds for unit in self.units),
            tuple(needs.of((*edge.inputs, *edge.ordered)) if edge else () for edge in self._edges),
        )

    def with_slots(self, slots: int) -> float:
        """Return how long the commands would take with a number of compile slots."""
        return makespan(self._work, slots)

    def critical_path(self) -> list[Unit]:
        """Return the longest chain of commands each of which needs the one before."""
        return [self.units[number] for number in critical_path(self._work)]


class _Needs:
    """Finds the commands that make some inputs, through edges that ran no command."""

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
        """Follow edges that ran no command; there can be more in a row than Python has calls."""
        waiting = [edge]
        while waiting:
            one = waiting[-1]
            inputs = (*one.inputs, *one.ordered)
            if id(one) in self._through:
                self._through[id(one)] = frozenset(self.of(inputs))
                waiting.pop()
            else:
                self._through[id(one)] = frozenset()  # a phony edge may name itself
                needed = (self._makers[name] for name in inputs if name in self._makers)
                waiting += (other for other in needed if not self._is_known(other))

    def _is_known(self, edge: Edge) -> bool:
        return id(edge) in self._numbers or id(edge) in self._through


def read_build(folder: Path) -> BuildRecord:
    """Read what a build left in its directory."""
    files = [left_by_ninja(folder, name) for name in (BUILD_FILE, LOG)]
    measured = folder / UNITS_FILE
    if measured.is_file() and measured.stat().st_size <= _LARGEST:
        files.append(measured)
    return _last_read(*files, times=tuple(path.stat().st_mtime_ns for path in files))


def read_started_build(folder: Path) -> BuildRecord:
    """Read a build that ninja may not have begun yet."""
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
    """Keep the last one: graph and timings are often asked for the same build."""
    usage = read_usage(measured) if measured else {}
    return BuildRecord(read_ninja_file(file), read_ninja_log(log), usage)


def read_usage(path: Path) -> dict[str, UnitUsage]:
    """Read what units took, by the file that each made; none, if the file can't be read."""
    try:
        return decode_units(path.read_bytes())
    except OSError:
        return {}


def read_edges(folder: Path) -> list[Edge]:
    """Read what ninja is to do in a directory."""
    return read_ninja_file(left_by_ninja(folder, BUILD_FILE))


def left_by_ninja(folder: Path, name: str) -> Path:
    """Return a file of ninja's, which has to be there and of a size that can be read."""
    path = folder / name
    if not path.is_file():
        is_planned = name == LOG and (folder / BUILD_FILE).is_file()
        what = "ninja has not run there" if is_planned else "CMake has not made it for ninja"
        hint = "run ninja there" if is_planned else "name a directory made by `cmake -G Ninja`"
        msg = f"`{folder}` has no {name}: {what}"
        raise UsageError(msg, hint=f"{hint}, or name a job of the plan")
    if (size := path.stat().st_size) > _LARGEST:
        msg = f"`{path}` has {size:,} bytes, and {_LARGEST:,} are read at most"
        raise BuildError(msg, hint="is it what ninja wrote? `ninja -t recompact` makes a log short")
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
    """Return whether a file is what a compiler makes of a unit."""
    return _OBJECT.search(output) is not None


def target_of(output: str, rule: str) -> str:
    """Return the target that a command belongs to: by CMake's names of folders and rules."""
    if folder := _TARGET_FOLDER.search(output):
        return folder[1]
    named = _TARGET_RULE.match(rule)
    return _ENCODED.sub(lambda code: chr(int(code[1], 16)), named[1]) if named else OTHERS
