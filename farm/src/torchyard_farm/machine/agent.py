"""A worker: one process for all slots of a machine."""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from buildbot_worker.bot import Worker
from twisted.internet import reactor
from twisted.python import log
from twisted.python.logfile import LogFile

from torchyard_farm.jobs.looking import WORK
from torchyard_farm.machine.answers import Answers
from torchyard_farm.machine.doorway import Doorway
from torchyard_farm.machine.idle import Idleness
from torchyard_farm.machine.lifeline import watch
from torchyard_farm.machine.roaming import Roaming
from torchyard_farm.notes import steady
from torchyard_farm.settings.farm import Address, escaped

_LOOK = 1.0
"""Seconds between two looks at whether a job runs."""


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


def run_agents(folder: Path, logins: list[Login], names: list[str], idle: int | None) -> None:
    """Work for one of several masters, until a signal ends it or none is the right one.

    With `idle`, also until no job has run for so many seconds.
    """
    own = str(Path(sys.executable).parent)  # where `torchyard` is, if anywhere
    os.environ["PATH"] = os.pathsep.join((own, os.environ.get("PATH", os.defpath)))
    log.startLogging(LogFile.fromFullPath(str(folder / "worker.log")), setStdout=False)
    doorway = Doorway(
        " or ".join(f"{one.master.host}:{one.master.port}" for one in logins), reactor
    )

    answers = Answers(folder / WORK)

    def agent_at(login: Login, name: str) -> Worker:
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
        watch(agent, reactor)
        doorway.watch(name, agent.bf)
        return agent

    running: Any = reactor
    agents = Roaming(running, logins, lambda login: [agent_at(login, name) for name in names])
    running.callWhenRunning(agents.startService)
    running.callWhenRunning(doorway.wait)
    running.addSystemEventTrigger("before", "shutdown", agents.stopService)
    if idle is not None:
        _end_when(Idleness(folder / WORK, idle, running.seconds()), running)
    running.run()
    doorway.tell()


def _end_when(idleness: Idleness, running: Any) -> None:
    def look() -> None:
        if idleness.is_over(running.seconds()):
            log.msg("there was nothing to do for a while: this machine's worker ends")
            looking.stop()
            running.stop()

    looking = steady(look, running)
    looking.start(_LOOK, now=False)
