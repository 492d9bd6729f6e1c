"""How long a machine has been idle."""

from pathlib import Path

from torchyard.run.detached import detached_in


class IdleTimer:
    """Measures the time since a job last ran on a machine."""

    def __init__(self, work: Path, limit: float, now: float) -> None:
        self._work = work
        self._limit = limit
        self._since = now

    def is_over(self, now: float) -> bool:
        """Return whether no job has run for longer than the limit."""
        if detached_in(self._work):
            self._since = now
        return now - self._since > self._limit
