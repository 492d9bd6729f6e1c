"""What machines told of themselves last, and what of that concerns nobody here."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
from twisted.python import log

from torchyard.host.locks import replace_bytes
from torchyard_farm.scheduling.resources import Resources
from torchyard_farm.scheduling.worker_status import (
    STATUS_CALL,
    STATUS_FILE,
    WorkerStatus,
    decode_status,
    orphaned_jobs,
)


class WorkerStatuses:
    """The last look of each machine."""

    def __init__(self) -> None:
        self._looks: dict[str, WorkerStatus] = {}
        self._strays: dict[str, dict[str, Resources]] = {}
        self._introduced: dict[str, Any] = {}

    def of(self, machine: str) -> WorkerStatus | None:
        return self._looks.get(machine)

    def strays(self, machine: str, followed: Collection[str]) -> dict[str, Resources]:
        """The jobs that nobody follows, nor did at the last look, with what they take."""
        known = self._strays.get(machine, {})
        return {name: takes for name, takes in known.items() if name not in followed}

    def hear(self, machine: str, told: str, followed: Collection[str]) -> WorkerStatus | None:
        """Hear what a machine tells, when these of its jobs are followed."""
        look = decode_status(told)
        if look is not None:
            left = orphaned_jobs(look, followed)
            for name in left.keys() - self._strays.get(machine, {}).keys():
                log.msg(f"{machine} runs {name}, and nobody follows it")
            self._looks[machine], self._strays[machine] = look, left
        return look

    def meet(self, machine: str, worker: Any, followed: Collection[str]) -> None:
        """Hear what a worker told when it connected, once."""
        if worker.conn is not None and self._introduced.get(worker.name) is not worker.conn:
            self._introduced[worker.name] = worker.conn
            self.hear(machine, worker.info.getProperty(STATUS_CALL) or "", followed)

    def forget_strays(self, *, but_of: Collection[str]) -> None:
        """Of machines that are gone nobody knows what runs there; they tell when they come back."""
        self._strays = {name: left for name, left in self._strays.items() if name in but_of}

    def write(self, folder: Path) -> None:
        """Let others read it, who are not a part of this master."""
        replace_bytes(folder / STATUS_FILE, msgspec.json.encode(self._looks))
