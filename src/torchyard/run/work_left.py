"""Estimate a step's remaining time, from earlier times of its commands or similar ones."""

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TypeVar

from torchyard.errors import TorchyardError
from torchyard.host.untrusted_tree import UntrustedTree
from torchyard.insight.ninja_file import read_ninja_file
from torchyard.insight.ninja_log import read_ninja_log
from torchyard.model.event import Progress
from torchyard.model.unit_usage import UnitUsage
from torchyard.run.unit_meter import UnitMeter
from torchyard.toolchain.ninja import is_compiled

_COUNT = re.compile(r"\[(\d+)/(\d+)( tests)?[\] ][\] ]*(.*)")
"""The start of lines of ninja and smoke tests: [finished commands/all commands]."""


class NinjaProgress:
    """Counts the commands of a job's step, which may run ninja several times.

    setuptools runs it once for each module of an extension. With CMake, the first run may only
    generate code, after which CMake runs again. So the number of all commands may grow.
    """

    def __init__(self, job: str) -> None:
        self._job = job
        self._done = self._total = self._earlier = 0
        self._compiles = False

    def read(self, line: str) -> Progress | None:
        """Return the step's progress, or None for a line without a count."""
        counted = _COUNT.match(line)
        if not counted:
            return None
        done, total = int(counted[1]), int(counted[2])
        if done < self._done or 0 < self._done == self._total:
            self._earlier += self._done
        self._done, self._total = done, total
        self._compiles = self._compiles or any(map(is_compiled, counted[4].split()))
        what = counted[4] if counted[3] else "" if self._compiles else "generating code"
        return Progress(
            job=self._job,
            done=self._earlier + done,
            total=self._earlier + total,
            unit="tests" if counted[3] else "commands",
            what=what,
        )


_T = TypeVar("_T")
_FEW = 10
"""The fewest known commands for an estimate."""
_LARGEST = 1 << 28
"""The most bytes of a file to read; PyTorch's have a tenth."""
_PAUSE = 10.0
"""Seconds between two estimates."""


class WorkLeft:
    """The remaining commands of ninja in the directories of a job.

    `known` is the usage of units in earlier builds. Other commands count like commands whose files
    have the same endings; ninja's log also has commands of interrupted runs.
    """

    def __init__(
        self, job: Path, seen_as: str, meter: UnitMeter, known: Mapping[str, UnitUsage]
    ) -> None:
        self._job = job
        self._seen_as = seen_as
        self._meter = meter
        self._known = {output: used.cpu for output, used in known.items()}
        self._outputs: list[str] = []
        self._until: float | None = None
        self._due = 0.0

    def seconds(self, commands: int) -> float | None:
        """Return the expected seconds of the last `commands`, or None if unknown."""
        now = time.monotonic()
        named = list(self._meter.folders)  # another thread adds to it
        folders = [name for name in named if name.startswith(f"{self._seen_as}/")]
        if folders and now >= self._due:
            self._due, cost = now + _PAUSE, self._mean_cost(folders[-1][len(self._seen_as) + 1 :])
            together = self._meter.concurrency
            self._until = now + commands * cost / together if cost is not None else None
        return None if self._until is None else max(0.0, self._until - now)

    def _mean_cost(self, folder: str) -> float | None:
        """Return the mean seconds of the remaining commands."""
        log = self._read(f"{folder}/.ninja_log", read_ninja_log) or []
        logged = {output: entry.seconds for entry in log for output in entry.outputs}
        if not self._outputs:
            edges = self._read(f"{folder}/build.ninja", read_ninja_file) or []
            self._outputs = [
                edge.outputs[0] for edge in edges if edge.outputs and not edge.is_phony
            ]
        both = logged.keys() & self._known.keys()  # scales CPU seconds to this machine, now
        cpu = sum(self._known[output] for output in both)
        slower = sum(logged[output] for output in both) / cpu if cpu else 1.0
        took = {output: seconds * slower for output, seconds in self._known.items()} | logged
        if len(took) < _FEW:
            return None
        kinds: dict[str, list[float]] = {}
        for output, seconds in took.items():
            kinds.setdefault(_kind(output), []).append(seconds)
        usual = {kind: sum(times) / len(times) for kind, times in kinds.items()}
        mean = sum(took.values()) / len(took)
        left = (output for output in self._outputs if output not in logged)
        costs = [took.get(output, usual.get(_kind(output), mean)) for output in left]
        return sum(costs) / len(costs) if costs else mean

    def _read(self, path: str, read: Callable[[Path], _T]) -> _T | None:
        """Read a step's file, without following links out of the job's directory."""
        with (
            suppress(TorchyardError, OSError),
            UntrustedTree(self._job) as tree,
            tree.open_file(path) as file,
        ):
            if os.fstat(file.fileno()).st_size > _LARGEST:
                return None
            return read(Path(f"/proc/self/fd/{file.fileno()}"))
        return None


def _kind(output: str) -> str:
    """Return the endings of a file: `.cu.o` takes longer than `.cpp.o`."""
    return "".join(PurePath(output).suffixes[-2:])
