"""Count the commands or tests of a step that are done, from the lines that it prints."""

import re
from typing import Literal, NamedTuple

from torchyard.toolchain.ninja import is_compiled

_COUNT = re.compile(r"\[(\d+)/(\d+)( tests)?[\] ][\] ]*(.*)")
"""How ninja begins a line, and so do smoke tests: [commands done/all commands]."""


class Counts(NamedTuple):
    """How much of a step is done, of how much as far as known, and what it does now."""

    done: int
    total: int
    unit: Literal["commands", "tests"] = "commands"
    what: str = ""


class NinjaProgress:
    """Counts the commands of a step, which may run ninja several times.

    setuptools runs it once for each module of an extension. With CMake, the first run may only
    generate code, upon which CMake is run again. So the number of all commands may grow.
    """

    def __init__(self) -> None:
        self._done = self._total = self._earlier = 0
        self._compiles = False

    def read(self, line: str) -> Counts | None:
        """Return the counts so far, or None if the line has none."""
        counted = _COUNT.match(line)
        if not counted:
            return None
        done, total = int(counted[1]), int(counted[2])
        if done < self._done or 0 < self._done == self._total:
            self._earlier += self._done
        self._done, self._total = done, total
        done, total = self._earlier + done, self._earlier + total
        if counted[3]:
            return Counts(done, total, "tests", counted[4])
        self._compiles = self._compiles or any(map(is_compiled, counted[4].split()))
        return Counts(done, total, what="" if self._compiles else "generating code")
