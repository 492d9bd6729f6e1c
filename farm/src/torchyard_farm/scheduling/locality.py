"""Data locality: which machine has which large inputs of jobs.

A machine keeps results that its jobs built or fetched for a while (`copies` in farm.toml). The
record here is a guess: a wrong one costs a download.
"""

from collections.abc import Iterable, Mapping

from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage

_TYPICAL = {Stage.SOURCE: 2000, Stage.CORE: 8000, Stage.BINDINGS: 1000, Stage.PACKAGE: 500}
"""Megabytes of the result of a job of PyTorch's size; results of other stages are small.

Only the order matters: a core of recipe `pytorch` contains its source, so it outweighs that.
Measured sizes of some inputs beside guesses for others could reverse it.
"""

_REMEMBERED = 1000
"""Maximum results in the record of a machine, more than it can keep."""


def large_inputs(task: Task, inputs: Iterable[tuple[int, Task]]) -> tuple[int, ...]:
    """Return the large inputs of a job; a publish job may run anywhere."""
    if task.stage is Stage.PUBLISH:
        return ()
    return tuple(number for number, other in inputs if other.stage in _TYPICAL)


def typical_size(task: Task) -> int:
    """Return the estimated size of a job's result in megabytes."""
    return _TYPICAL.get(task.stage, 0)


class InputLocality:
    """The results recently built or used on each machine."""

    def __init__(self) -> None:
        self._results: dict[str, dict[str, None]] = {}

    def record(self, machine: str, fingerprints: Iterable[str]) -> None:
        """Record that a machine has these results now."""
        results = self._results.setdefault(machine, {})
        for fingerprint in fingerprints:
            results.pop(fingerprint, None)
            results[fingerprint] = None
        while len(results) > _REMEMBERED:
            del results[next(iter(results))]

    def local_size(self, machine: str, inputs: Mapping[str, int]) -> int:
        """Return the size of the inputs that are on a machine."""
        results = self._results.get(machine, {})
        return sum(size for fingerprint, size in inputs.items() if fingerprint in results)

    def total_size(self, inputs: Mapping[str, int]) -> int:
        """Return the size of the inputs on all machines together."""
        return sum(self.local_size(machine, inputs) for machine in self._results)
