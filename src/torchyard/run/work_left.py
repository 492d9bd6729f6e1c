"""Estimates how long a step will take: from what its commands took before, or others like them."""

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
"""How ninja begins a line, and so do smoke tests: [commands done/all commands]."""


class NinjaProgress:
    """Counts the commands of a job's step, which may run ninja several times.

    setuptools runs it once for each module of an extension. With CMake, the first run may only
    generate code, upon which CMake is run again. So the number of all commands may grow.
    """

    def __init__(self, job: str) -> None:
        self._job = job
        self._done = self._total = self._earlier = 0
        self._compiles = False

    def read(self, line: str) -> Progress | None:
        """Return how far the step is, or None if the line has no count."""
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
"""With fewer known commands there is no estimate."""
_LARGEST = 1 << 28
"""Bytes of a file that is read; those of PyTorch have a tenth."""
_PAUSE = 10.0
"""Seconds between two estimates."""


class WorkLeft:
    """The commands that ninja has left in the directories of a job.

    `known` is what units took in earlier builds. Other commands are taken to be like those that
    made files with the same endings; ninja's log also has those of a run that was interrupted.
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
        """Return the seconds that the last `commands` will take, or None if that is unknown."""
        now = time.monotonic()
        named = list(self._meter.folders)  # which another thread adds to
        folders = [name for name in named if name.startswith(f"{self._seen_as}/")]
        if folders and now >= self._due:
            self._due, cost = now + _PAUSE, self._mean_cost(folders[-1][len(self._seen_as) + 1 :])
            together = self._meter.concurrency
            self._until = now + commands * cost / together if cost is not None else None
        return None if self._until is None else max(0.0, self._until - now)

    def _mean_cost(self, folder: str) -> float | None:
        """Return the mean seconds of the commands that were not run yet."""
        log = self._read(f"{folder}/.ninja_log", read_ninja_log) or []
        logged = {output: entry.seconds for entry in log for output in entry.outputs}
        if not self._outputs:
            edges = self._read(f"{folder}/build.ninja", read_ninja_file) or []
            self._outputs = [
                edge.outputs[0] for edge in edges if edge.outputs and not edge.is_phony
            ]
        both = logged.keys() & self._known.keys()  # CPU seconds become those of this machine now
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
        """Read a file that a step has made, which must not lead out of the job's directory."""
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
