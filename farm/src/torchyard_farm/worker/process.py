"""A worker: one process for all slots of a machine."""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from buildbot_worker.bot import Worker
from twisted.internet import reactor
from twisted.python import log
from twisted.python.logfile import LogFile

from torchyard_farm.scheduling.worker_status import JOBS_FOLDER
from torchyard_farm.settings.farm import Address, escaped
from torchyard_farm.twisted_tools import resilient_loop
from torchyard_farm.worker.failover import MasterFailover
from torchyard_farm.worker.idle import IdleTimer
from torchyard_farm.worker.keepalive import keep_alive
from torchyard_farm.worker.login import LoginMonitor
from torchyard_farm.worker.status_reporter import StatusReporter

_LOOK = 1.0
"""Seconds between two looks at whether a job runs."""


class MasterLogin(NamedTuple):
    """How a master is reached; it is trusted if one of these authorities says who it is."""

    master: Address
    password: str
    tls: bool
    authorities: Path | None

    @property
    def endpoint(self) -> str:
        """As Twisted writes it."""
        kind = "tls" if self.tls else "tcp"
        where = f"{kind}:host={escaped(self.master.host)}:port={self.master.port}"
        known = f":trustRoots={escaped(str(self.authorities))}" if self.authorities else ""
        return where + known


def run_workers(
    folder: Path, logins: list[MasterLogin], names: list[str], idle: int | None
) -> None:
    """Work for one of several masters, until a signal ends it or none is the right one.

    With `idle`, also until no job has run for so many seconds.
    """
    own = str(Path(sys.executable).parent)  # where `torchyard` is, if anywhere
    os.environ["PATH"] = os.pathsep.join((own, os.environ.get("PATH", os.defpath)))
    log.startLogging(LogFile.fromFullPath(str(folder / "worker.log")), setStdout=False)
    doorway = LoginMonitor(
        " or ".join(f"{one.master.host}:{one.master.port}" for one in logins), reactor
    )

    answers = StatusReporter(folder / JOBS_FOLDER)

    def agent_at(login: MasterLogin, name: str) -> Worker:
        base = folder / name
        base.mkdir(parents=True, exist_ok=True)
        agent = Worker(
            None,
            None,
            name,
            login.password,
            str(base),
            keepalive=0,
            connection_string=login.endpoint,
        )
        answers.teach(agent.bot)
        keep_alive(agent, reactor)
        doorway.watch(name, agent.bf)
        return agent

    running: Any = reactor
    agents = MasterFailover(
        running, logins, lambda login: [agent_at(login, name) for name in names]
    )
    running.callWhenRunning(agents.startService)
    running.callWhenRunning(doorway.wait)
    running.addSystemEventTrigger("before", "shutdown", agents.stopService)
    if idle is not None:
        _end_when(IdleTimer(folder / JOBS_FOLDER, idle, running.seconds()), running)
    running.run()
    doorway.tell()


def _end_when(idleness: IdleTimer, running: Any) -> None:
    def look() -> None:
        if idleness.is_over(running.seconds()):
            log.msg("there was nothing to do for a while: this machine's worker ends")
            looking.stop()
            running.stop()

    looking = resilient_loop(look, running)
    looking.start(_LOOK, now=False)
