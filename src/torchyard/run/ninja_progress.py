"""Count the commands or tests of a step that are done, from the lines that it prints."""

import re

from torchyard.model.event import Progress
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
