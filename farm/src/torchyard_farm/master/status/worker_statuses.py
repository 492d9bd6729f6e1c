"""The last status report of each machine, and the orphaned jobs that it lists."""

from collections.abc import Collection
from pathlib import Path

import msgspec
from buildbot.worker import AbstractWorker
from buildbot.worker.protocols.base import Connection
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
    """Statuses by machine."""

    def __init__(self) -> None:
        self._statuses: dict[str, WorkerStatus] = {}
        self._orphans: dict[str, dict[str, Resources]] = {}
        self._introduced: dict[str, Connection] = {}

    def get(self, machine: str) -> WorkerStatus | None:
        return self._statuses.get(machine)

    def orphans(self, machine: str, followed: Collection[str]) -> dict[str, Resources]:
        """Return the resources of jobs without a build, now and at the last report."""
        orphans = self._orphans.get(machine, {})
        return {name: takes for name, takes in orphans.items() if name not in followed}

    def update(self, machine: str, report: str, followed: Collection[str]) -> WorkerStatus | None:
        """Process a machine's report; `followed` are its jobs with builds."""
        status = decode_status(report)
        if status is not None:
            orphans = orphaned_jobs(status, followed)
            for name in orphans.keys() - self._orphans.get(machine, {}).keys():
                log.msg(f"{machine} runs {name}, which no build follows")
            self._statuses[machine], self._orphans[machine] = status, orphans
        return status

    def introduce(self, machine: str, worker: AbstractWorker, followed: Collection[str]) -> None:
        """Process, once, the report that a worker sent when it connected."""
        if worker.conn is not None and self._introduced.get(worker.name) is not worker.conn:
            self._introduced[worker.name] = worker.conn
            self.update(machine, worker.info.getProperty(STATUS_CALL) or "", followed)

    def forget_orphans(self, *, except_on: Collection[str]) -> None:
        """Forget orphans of disconnected machines, which report them when they reconnect."""
        self._orphans = {name: jobs for name, jobs in self._orphans.items() if name in except_on}

    def write(self, folder: Path) -> None:
        """Write the statuses to the file that `farm status` reads."""
        replace_bytes(folder / STATUS_FILE, msgspec.json.encode(self._statuses))
