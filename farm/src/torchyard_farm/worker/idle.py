"""Whether a machine has anything to do."""

from pathlib import Path

from torchyard.run.detached import detached_in


class IdleTimer:
    """Since when nothing was done on a machine."""

    def __init__(self, work: Path, limit: float, now: float) -> None:
        self._work = work
        self._limit = limit
        self._since = now

    def is_over(self, now: float) -> bool:
        """Whether there was nothing to do for so long that the machine may go."""
        if detached_in(self._work):
            self._since = now
        return now - self._since > self._limit
