"""A worker: one process for all slots of a machine."""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from buildbot_worker.bot import Worker
from twisted.application.service import MultiService
from twisted.internet import reactor
from twisted.python import log
from twisted.python.logfile import LogFile

from torchyard_farm.buildbot.doorway import Doorway
from torchyard_farm.buildbot.jobs import tell_jobs
from torchyard_farm.buildbot.lifeline import watch
from torchyard_farm.buildbot.looks import tell_of
from torchyard_farm.looking import WORK
from torchyard_farm.settings import Address, escaped


class Login(NamedTuple):
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


def run_agents(folder: Path, login: Login, names: list[str]) -> None:
    """Work for a master, until a signal ends it or the master is not the right one."""
    own = str(Path(sys.executable).parent)  # where `torchyard` is, if anywhere
    os.environ["PATH"] = os.pathsep.join((own, os.environ.get("PATH", os.defpath)))
    log.startLogging(LogFile.fromFullPath(str(folder / "worker.log")), setStdout=False)
    agents = MultiService()
    doorway = Doorway(f"{login.master.host}:{login.master.port}", reactor)
    for name in names:
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
        tell_jobs(agent.bot, folder / WORK)
        tell_of(agent.bot, folder)
        watch(agent)
        doorway.watch(name, agent.bf)
        agent.setServiceParent(agents)
    running: Any = reactor
    running.callWhenRunning(agents.startService)
    running.callWhenRunning(doorway.wait)
    running.addSystemEventTrigger("before", "shutdown", agents.stopService)
    running.run()
    doorway.tell()
