"""Machines that are started when there is work for them, and end themselves when there is none.

Buildbot's own workers of that kind end a machine when the master stops, and forget it when the
master is killed: either would cost the job that runs on it. So here the master only starts.
"""

from collections.abc import Sequence
from typing import Any

from buildbot.util.runprocess import run_process
from buildbot.worker import AbstractLatentWorker
from twisted.internet import defer
from twisted.python import log

_COMING = 20 * 60
"""Seconds that a machine may take from its start until its agents connect."""


class MachineStarter:
    """Starts one machine, for all its agents."""

    def __init__(self, name: str, command: Sequence[str], folder: str) -> None:
        self._name = name
        self._command = command
        self._folder = folder
        self._turn = defer.DeferredLock()
        self._began: float | None = None
        self._here: set[str] = set()

    def start(self, reactor: Any) -> Any:
        """Start the machine, unless it is there or about to be; whether its agents will come."""
        return self._turn.run(self._start, reactor)

    @defer.inlineCallbacks
    def _start(self, reactor: Any) -> Any:
        is_coming = self._began is not None and reactor.seconds() - self._began < _COMING
        if self._here or is_coming:
            return True
        code, out, err = yield run_process(
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

    def come(self, agent: str) -> None:
        self._here.add(agent)

    def leave(self, agent: str) -> None:
        """An agent is gone; with the last one the machine is, and the next start is a new one."""
        self._here.discard(agent)
        if not self._here:
            self._began = None


class OnDemandWorker(AbstractLatentWorker):
    """An agent of such a machine. Buildbot never ends it, and lets it come back at any time."""

    def checkConfig(self, name: str, password: str, starter: MachineStarter, **more: Any) -> None:
        super().checkConfig(name, password, build_wait_timeout=-1, **more)

    def reconfigService(
        self, name: str, password: str, starter: MachineStarter, **more: Any
    ) -> Any:
        self._starter = starter
        return super().reconfigService(
            name, password, build_wait_timeout=-1, missing_timeout=_COMING, **more
        )

    def start_instance(self, build: Any) -> Any:
        if self.conn is not None:
            return defer.succeed(result=True)
        return self._starter.start(self.master.reactor)

    def stop_instance(self, fast: bool = False) -> Any:  # noqa: FBT001, FBT002 - as Buildbot calls it
        """Do nothing: the machine ends itself once no job runs there any more."""
        return defer.succeed(result=True)

    def attached(self, conn: Any) -> Any:
        self._starter.come(self.name)
        return super().attached(conn)

    def detached(self) -> Any:
        self._starter.leave(self.name)
        return super().detached()
