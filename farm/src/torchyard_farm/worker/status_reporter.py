"""What a worker's agents answer to the master: what its machine has and runs, and to end a job."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from twisted.internet import defer
from twisted.internet.threads import deferToThread
from twisted.python import log

from torchyard.host.memory import read_memory
from torchyard.run.detached import end_named
from torchyard.run.local_jobs import disk_here, jobs_here
from torchyard_farm.scheduling.resources import resources_for
from torchyard_farm.scheduling.worker_status import STATUS_CALL, RunningJob, WorkerStatus
from torchyard_farm.twisted_tools import log_failure

_NAME = re.compile(r"[a-z]+-[0-9a-f]+")


class StatusReporter:
    """Those of one machine: any of its agents may be asked, and they all answer the same."""

    def __init__(self, work: Path, apart: Callable[..., Any] = deferToThread) -> None:
        self._work = work
        self._apart = apart
        self._asking: list[defer.Deferred[str]] = []
        self._ending: set[str] = set()

    def teach(self, bot: Any) -> None:
        """Let an agent answer; `bot` is what a master talks to: it calls what is named `remote_…`.

        When the agent connects, the master hears the same unasked.
        """
        usual = bot.remote_getWorkerInfo

        def introduce() -> Any:
            return self._look().addCallback(lambda told: usual() | {STATUS_CALL: told})

        bot.remote_look, bot.remote_end, bot.remote_getWorkerInfo = self._look, self._end, introduce

    def _look(self) -> Any:
        """Look at the machine, once for all who ask at the same time."""
        answer: defer.Deferred[str] = defer.Deferred()
        self._asking.append(answer)
        if len(self._asking) == 1:
            self._apart(measure_status, self._work).addErrback(_unknown).addCallback(self._tell)
        return answer

    def _tell(self, told: str) -> None:
        asking, self._asking = self._asking, []
        for answer in asking:
            answer.callback(told)

    def _end(self, name: str) -> None:
        """End what nobody wants any more; who says so again and again need not wait for it."""
        if _NAME.fullmatch(name) and name not in self._ending:
            self._ending.add(name)
            ended = self._apart(end_named, self._work, name).addErrback(log_failure)
            ended.addBoth(lambda _: self._ending.discard(name))


def measure_status(work: Path) -> str:
    """Look at the machine that a directory for jobs is on."""
    jobs = {}
    for name, fingerprint, age, needs in jobs_here(work):
        takes = None if needs is None else resources_for(needs.memory, needs.disk)
        jobs[fingerprint] = RunningJob(name=name, age=age, takes=takes)
    look = WorkerStatus(memory=read_memory().total, disk=disk_here(work), jobs=jobs)
    return msgspec.json.encode(look).decode()


def _unknown(why: Any) -> str:
    log.err(why, "this machine can't be looked at")
    return ""
