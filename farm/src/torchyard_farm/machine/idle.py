"""Whether a machine has anything to do."""

from pathlib import Path

from torchyard.host.detached import find_record
from torchyard.run.workplace import RECORD


def is_busy(work: Path) -> bool:
    """Whether a job runs below a directory, or waits there for what another machine does."""
    for path in work.glob(f"*{RECORD}"):
        record = find_record(path)
        if record is not None:
            try:
                if record.is_running():
                    return True
            finally:
                record.close()
    return False


class Idleness:
    """Since when nothing was done on a machine."""

    def __init__(self, work: Path, limit: float, now: float) -> None:
        self._work = work
        self._limit = limit
        self._since = now

    def is_over(self, now: float) -> bool:
        """Whether there was nothing to do for so long that the machine may go."""
        if is_busy(self._work):
            self._since = now
        return now - self._since > self._limit
