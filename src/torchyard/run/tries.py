"""What the tries of a step used: the one that ended well, and those that did not."""

import time

import msgspec

from torchyard.host.child import Sample
from torchyard.model.result import Usage
from torchyard.run.workdir import JobState, WorkDir

_PAUSE = 5.0
"""Seconds between two notes of what a running step has used."""


class StepTries:
    """The tries of a step, noted in the state of its job, which survives a killed run."""

    def __init__(self, place: WorkDir, state: JobState, step: str) -> None:
        self._place = place
        self._state = self._running = state
        self._step = step
        self._noted = 0.0

    def usage(self, used: Sample, disk: int = 0) -> Usage:
        """Return what this try and all earlier ones used."""
        now = Usage(
            step=self._step,
            seconds=round(used.seconds, 3),
            cpu=round(used.cpu, 3),
            memory=used.memory,
            disk=disk,
        )
        return now.after(self._state.unfinished)

    def begin(self, group: int, born: str) -> None:
        """Note a new try, and its process group."""
        self._running = msgspec.structs.replace(self._state, group=group, born=born)
        self._save(Sample(0, 0, 0))

    def note(self, used: Sample, *, last: bool = False) -> None:
        """Note what this try has used so far, unless that was done a moment ago."""
        if last or time.monotonic() - self._noted > _PAUSE:
            self._noted = time.monotonic()
            self._save(used)

    def _save(self, used: Sample) -> None:
        self._place.save(msgspec.structs.replace(self._running, unfinished=self.usage(used)))
