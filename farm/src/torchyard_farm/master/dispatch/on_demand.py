"""Machines that are started for work, and shut themselves down when idle.

Buildbot's own latent workers stop a machine when the master stops, and forget it when the master is
killed: either would lose the job that runs on it. So here the master only starts machines.
"""

from collections.abc import Sequence

from buildbot.process.build import Build
from buildbot.util.runprocess import run_process
from buildbot.worker import AbstractLatentWorker
from buildbot.worker.protocols.base import Connection
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.twisted_tools import ReactorTime, async_to_deferred

_BOOT_TIME = 20 * 60
"""Seconds that a machine may take from its start until its workers connect."""


class MachineStarter:
    """Starts one machine, for all its workers."""

    def __init__(self, name: str, command: Sequence[str], folder: str) -> None:
        self._name = name
        self._command = command
        self._folder = folder
        self._lock = defer.DeferredLock()
        self._began: float | None = None
        self._connected: set[str] = set()

    def start(self, reactor: ReactorTime) -> defer.Deferred[bool]:
        """Start the machine unless it runs or is booting; return whether its workers will come."""
        return self._lock.run(self._start, reactor)

    @async_to_deferred
    async def _start(self, reactor: ReactorTime) -> bool:
        is_booting = self._began is not None and reactor.seconds() - self._began < _BOOT_TIME
        if self._connected or is_booting:
            return True
        code, out, err = await run_process(
            reactor,
            list(self._command),
            env={"MACHINE": self._name},
            workdir=self._folder,
            collect_stdout=True,
            collect_stderr=True,
        )
        log.msg(f"starting machine {self._name} ended with {code}: {out + err!r}")
        self._began = None if code else reactor.seconds()
        return code == 0

    def connected(self, worker: str) -> None:
        self._connected.add(worker)

    def disconnected(self, worker: str) -> None:
        """Record that a worker is gone; after the last one, the machine can be started again."""
        self._connected.discard(worker)
        if not self._connected:
            self._began = None


class OnDemandWorker(AbstractLatentWorker):
    """A worker of such a machine: Buildbot never stops it, and lets it connect at any time."""

    def checkConfig(
        self, name: str, password: str, starter: MachineStarter, **more: object
    ) -> None:
        super().checkConfig(name, password, build_wait_timeout=-1, **more)

    def reconfigService(
        self, name: str, password: str, starter: MachineStarter, **more: object
    ) -> defer.Deferred[None]:
        self._starter = starter
        return super().reconfigService(
            name, password, build_wait_timeout=-1, missing_timeout=_BOOT_TIME, **more
        )

    def start_instance(self, build: Build) -> defer.Deferred[bool]:
        if self.conn is not None:
            return defer.succeed(result=True)
        return self._starter.start(self.master.reactor)

    def stop_instance(self, fast: bool = False) -> defer.Deferred[bool]:  # noqa: FBT001, FBT002 - as Buildbot calls it
        """Do nothing: the machine shuts itself down when it has no more jobs."""
        return defer.succeed(result=True)

    def attached(self, conn: Connection) -> defer.Deferred[None]:
        self._starter.connected(self.name)
        return super().attached(conn)

    def detached(self) -> defer.Deferred[None]:
        self._starter.disconnected(self.name)
        return super().detached()
