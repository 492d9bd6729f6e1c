"""A worker: one process for all slots of a machine."""

import os
import sys
from pathlib import Path
from typing import Any

from buildbot_worker.bot import Worker
from twisted.application.service import MultiService
from twisted.internet import reactor
from twisted.python import log
from twisted.python.logfile import LogFile

from torchyard_farm.buildbot.jobs import tell_jobs
from torchyard_farm.buildbot.lifeline import watch
from torchyard_farm.settings import Address


def run_agents(folder: Path, master: Address, names: list[str], password: str) -> None:
    """Work for a master, until a signal ends it."""
    own = str(Path(sys.executable).parent)  # where `torchyard` is, if anywhere
    os.environ["PATH"] = os.pathsep.join((own, os.environ.get("PATH", os.defpath)))
    log.startLogging(LogFile.fromFullPath(str(folder / "worker.log")), setStdout=False)
    agents = MultiService()
    for name in names:
        base = folder / name
        base.mkdir(parents=True, exist_ok=True)
        agent = Worker(master.host, master.port, name, password, str(base), keepalive=0)
        tell_jobs(agent.bot, folder / "work")
        watch(agent)
        agent.setServiceParent(agents)
    running: Any = reactor
    running.callWhenRunning(agents.startService)
    running.addSystemEventTrigger("before", "shutdown", agents.stopService)
    running.run()
