"""Which machine has what of the large things that jobs are made from.

A machine keeps what its jobs made or fetched for a while (`copies` in farm.toml). What is known of
that here are guesses: a wrong one costs a download.
"""

from collections.abc import Iterable, Mapping

from torchyard.model.job_spec import Task
from torchyard.model.recipe import Stage

_TYPICAL = {Stage.SOURCE: 2000, Stage.CORE: 8000, Stage.BINDINGS: 1000, Stage.PACKAGE: 500}
"""Megabytes that the result of a job of PyTorch's size has; others are not worth a thought.

What counts is which of a job's inputs outweighs which: a core of recipe `pytorch` holds its source.
True sizes of some inputs beside guesses for others could turn that round.
"""

_MEMORY = 1000
"""How many results of each machine are remembered: more than there can be copies of."""


def large_inputs(task: Task, inputs: Iterable[tuple[int, Task]]) -> tuple[int, ...]:
    """Those of the inputs of a job that are worth a thought; one that publishes goes anywhere."""
    if task.stage is Stage.PUBLISH:
        return ()
    return tuple(number for number, other in inputs if other.stage in _TYPICAL)


def typical_size(task: Task) -> int:
    """How large the result of a job will be, roughly."""
    return _TYPICAL.get(task.stage, 0)


class InputLocality:
    """Which results were made or used on which machine lately."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, None]] = {}

    def note(self, machine: str, fingerprints: Iterable[str]) -> None:
        """A machine has these now."""
        known = self._known.setdefault(machine, {})
        for fingerprint in fingerprints:
            known.pop(fingerprint, None)
            known[fingerprint] = None
        while len(known) > _MEMORY:
            del known[next(iter(known))]

    def found(self, machine: str, inputs: Mapping[str, int]) -> int:
        """How much of some inputs is on a machine."""
        known = self._known.get(machine, {})
        return sum(size for fingerprint, size in inputs.items() if fingerprint in known)

    def spread(self, inputs: Mapping[str, int]) -> int:
        """How much of some inputs there is on all machines together."""
        return sum(self.found(machine, inputs) for machine in self._known)
