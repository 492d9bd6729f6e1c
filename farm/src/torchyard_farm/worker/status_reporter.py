"""A worker's answers to its master: the machine's resources and jobs, and requests to end a job."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

import msgspec
from buildbot_worker.pb import BotPb
from twisted.internet import defer
from twisted.internet.threads import deferToThread
from twisted.python import log
from twisted.python.failure import Failure

from torchyard.host.memory import read_memory
from torchyard.run.detached import end_named
from torchyard.run.local_jobs import free_disk, running_jobs
from torchyard_farm.scheduling.resources import resources_for
from torchyard_farm.scheduling.worker_status import STATUS_CALL, RunningJob, WorkerStatus
from torchyard_farm.twisted_tools import in_background, log_failure

P = ParamSpec("P")
T = TypeVar("T")

_NAME = re.compile(r"[a-z]+-[0-9a-f]+")


class InThread(Protocol):
    """Runs a function in another thread."""

    def __call__(
        self, f: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> defer.Deferred[T]: ...


class StatusReporter:
    """Answers for a machine: the master may query any of its workers, and all report the same."""

    def __init__(self, work: Path, in_thread: InThread = deferToThread) -> None:
        self._work = work
        self._in_thread = in_thread
        self._waiting: list[defer.Deferred[str]] = []
        self._ending: set[str] = set()

    def attach(self, bot: BotPb) -> None:
        """Add the answers to a worker's `bot`, whose `remote_…` methods the master calls.

        A worker also sends the report when it connects.
        """
        usual = bot.remote_getWorkerInfo

        def introduce() -> defer.Deferred[dict[str, object]]:
            return self._report().addCallback(lambda report: {**usual(), STATUS_CALL: report})

        bot.remote_look, bot.remote_end = self._report, self._end
        bot.remote_getWorkerInfo = introduce

    def _report(self) -> defer.Deferred[str]:
        """Measure the machine, once for all callers at the same time."""
        answer: defer.Deferred[str] = defer.Deferred()
        self._waiting.append(answer)
        if len(self._waiting) == 1:
            measured = self._in_thread(measure_status, self._work)
            in_background(measured.addErrback(_no_report).addCallback(self._answer_all))
        return answer

    def _answer_all(self, report: str) -> None:
        waiting, self._waiting = self._waiting, []
        for answer in waiting:
            answer.callback(report)

    def _end(self, name: str) -> None:
        """End an unneeded job; return at once, and allow repeated calls."""
        if _NAME.fullmatch(name) and name not in self._ending:
            self._ending.add(name)
            ended = self._in_thread(end_named, self._work, name).addErrback(log_failure)
            in_background(ended.addBoth(lambda _: self._ending.discard(name)))


def measure_status(work: Path) -> str:
    """Return the status of the machine with a directory of jobs, as JSON."""
    jobs = {}
    for name, fingerprint, age, needs in running_jobs(work):
        takes = None if needs is None else resources_for(needs.memory, needs.disk)
        jobs[fingerprint] = RunningJob(name=name, age=age, takes=takes)
    status = WorkerStatus(memory=read_memory().total, disk=free_disk(work), jobs=jobs)
    return msgspec.json.encode(status).decode()


def _no_report(why: Failure) -> str:
    log.err(why, "the status of this machine can't be measured")
    return ""
