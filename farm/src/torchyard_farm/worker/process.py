"""The worker process: one for all slots of a machine."""

import os
import sys
from pathlib import Path
from typing import NamedTuple

from buildbot_worker.bot import Worker
from twisted.python import log
from twisted.python.logfile import LogFile

from torchyard.run.detached import detached_in
from torchyard_farm.scheduling.worker_status import JOBS_FOLDER
from torchyard_farm.settings.farm import Address, escaped
from torchyard_farm.twisted_tools import Reactor, global_reactor, start_loop
from torchyard_farm.worker.commands import OwnBuilder
from torchyard_farm.worker.failover import MasterFailover
from torchyard_farm.worker.keepalive import keep_alive
from torchyard_farm.worker.login import LoginMonitor
from torchyard_farm.worker.status_reporter import StatusReporter


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


_INTERVAL = 1.0
"""Seconds between two checks whether a job runs."""


class MasterLogin(NamedTuple):
    """The address of a master, which is trusted if one of these authorities has signed for it."""

    master: Address
    password: str
    tls: bool
    authorities: Path | None

    @property
    def endpoint(self) -> str:
        """The endpoint in Twisted's syntax."""
        kind = "tls" if self.tls else "tcp"
        where = f"{kind}:host={escaped(self.master.host)}:port={self.master.port}"
        trust = f":trustRoots={escaped(str(self.authorities))}" if self.authorities else ""
        return where + trust


def run_workers(
    folder: Path, logins: list[MasterLogin], names: list[str], idle: int | None
) -> None:
    """Work for one of several masters until a signal arrives, or no master accepts this machine.

    With `idle`, also stop after this many seconds without a job.
    """
    programs = str(Path(sys.executable).parent)  # usually contains `torchyard`
    os.environ["PATH"] = os.pathsep.join((programs, os.environ.get("PATH", os.defpath)))
    log.startLogging(LogFile.fromFullPath(str(folder / "worker.log")), setStdout=False)
    reactor = global_reactor()
    monitor = LoginMonitor(
        " or ".join(f"{login.master.host}:{login.master.port}" for login in logins), reactor
    )
    reporter = StatusReporter(folder / JOBS_FOLDER)

    def worker_at(login: MasterLogin, name: str) -> Worker:
        base = folder / name
        base.mkdir(parents=True, exist_ok=True)
        worker = Worker(
            None,
            None,
            name,
            login.password,
            str(base),
            keepalive=0,
            connection_string=login.endpoint,
        )
        worker.bot.WorkerForBuilder = OwnBuilder
        reporter.attach(worker.bot)
        keep_alive(worker, reactor)
        monitor.watch(name, worker.bf)
        return worker

    workers = MasterFailover(
        reactor, logins, lambda login: [worker_at(login, name) for name in names]
    )
    reactor.callWhenRunning(workers.startService)
    reactor.callWhenRunning(monitor.start)
    reactor.addSystemEventTrigger("before", "shutdown", workers.stopService)
    if idle is not None:
        _stop_when_idle(IdleTimer(folder / JOBS_FOLDER, idle, reactor.seconds()), reactor)
    reactor.run()
    monitor.raise_error()


def _stop_when_idle(timer: IdleTimer, reactor: Reactor) -> None:
    def check() -> None:
        if timer.is_over(reactor.seconds()):
            log.msg("this machine was idle for a while: its worker process stops")
            checking.stop()
            reactor.stop()

    checking = start_loop(check, _INTERVAL, reactor)
