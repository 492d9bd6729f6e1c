"""Count the commands of a step that are done, from the lines that ninja prints."""

import re

_COUNT = re.compile(r"\[(\d+)/(\d+)[\] ]")
"""How ninja begins a line: [commands done/all commands]."""


class NinjaProgress:
    """Counts the commands of a step, which may run ninja several times.

    setuptools runs it once for each module of an extension, and the number of modules is unknown.
    """

    def __init__(self) -> None:
        self._done = self._total = self._earlier = 0

    def read(self, line: str) -> tuple[int, int] | None:
        """Return the commands done and all commands, or None if the line has no count.

        All commands are 0, for unknown, from the second run of ninja on.
        """
        counted = _COUNT.match(line)
        if not counted:
            return None
        done, total = int(counted[1]), int(counted[2])
        if done < self._done or 0 < self._done == self._total:
            self._earlier += self._done
        self._done, self._total = done, total
        return self._earlier + done, 0 if self._earlier else total
