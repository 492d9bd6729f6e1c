"""The few requests to a master's web API that commands need."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec

from torchyard.errors import ElsewhereError, HostError
from torchyard.host.http import HttpClient
from torchyard_farm.scheduling.attempts import FINAL_VERDICTS
from torchyard_farm.scheduling.plan_tracker import JobStatus, PlanTracker
from torchyard_farm.scheduling.plans import FarmPlan
from torchyard_farm.settings.farm import Farm

GOOD = (0, 1)
"""Buildbot's codes of success, and success with warnings."""

FAILED = 2
CANCELLED = 6

_LINES = 200
"""Lines to read from the end of a log; error messages are shorter."""

T = TypeVar("T")


class SubmittedJob(msgspec.Struct):
    """A job that was submitted, or resubmitted: a buildset, whose name is PLAN/NUMBER."""

    bsid: int
    external_idstring: str
    complete: bool
    complete_at: int | None
    results: int | None

    @property
    def plan(self) -> str:
        return self.external_idstring.rpartition("/")[0]

    @property
    def job(self) -> int:
        return int(self.external_idstring.rpartition("/")[2])

    @property
    def status(self) -> JobStatus:
        return JobStatus(self.job, self.complete, self.results in GOOD)


def track_plan(plan: FarmPlan, submitted: Iterable[SubmittedJob]) -> PlanTracker:
    """Return a tracker of a plan, given its submitted jobs."""
    tracker = PlanTracker({})
    tracker.add(plan, (job.status for job in submitted))
    return tracker


class RunningBuild(NamedTuple):
    """A running job: its build and machine, which is unknown at first."""

    build: int
    machine: str
    attempt: int = 1


class LastAttempt(NamedTuple):
    """The last attempt of a job: its page, its exit code, and the end of its log."""

    page: str = ""
    worker: str = ""
    code: int = ElsewhereError.exit_code
    held: str = ""
    """Why it is not attempted again, if that is not its own fault."""
    log: Sequence[str] = ()


class _Link(msgspec.Struct):
    masterid: int


class _Worker(msgspec.Struct):
    name: str
    connected_to: list[_Link]


class _Workers(msgspec.Struct):
    workers: list[_Worker]


class _Sets(msgspec.Struct):
    buildsets: list[SubmittedJob]


class _Properties(msgspec.Struct):
    plan: tuple[str, str] = ("", "")
    job: tuple[int, str] = (-1, "")
    workername: tuple[str, str] = ("", "")
    machine: tuple[str, str] = ("", "")
    attempt: tuple[int, str] = (1, "")
    verdict: tuple[str, str] = ("", "")
    code: tuple[int | None, str] = (None, "")


class _Build(msgspec.Struct):
    buildid: int
    builderid: int
    number: int
    complete: bool
    state_string: str
    properties: _Properties


class _Builds(msgspec.Struct):
    builds: list[_Build]


class _Request(msgspec.Struct):
    buildrequestid: int
    buildsetid: int


class _Requests(msgspec.Struct):
    buildrequests: list[_Request]


class _Log(msgspec.Struct):
    num_lines: int


class _Logs(msgspec.Struct):
    logs: list[_Log]


class _Chunk(msgspec.Struct):
    content: str


class _Chunks(msgspec.Struct):
    logchunks: list[_Chunk]


class MasterClient:
    """A client of one master."""

    def __init__(self, farm: Farm) -> None:
        self._here = farm.web.url
        self._pages = farm.url
        self._web = HttpClient(tries=1)  # the follower retries by itself

    def workers(self) -> set[str]:
        """Return the names of all connected workers."""
        found = self._ask("workers", _Workers).workers
        return {worker.name for worker in found if worker.connected_to}

    def submitted(self, plan: str) -> list[SubmittedJob]:
        """Return the submitted jobs of a plan, in this order."""
        return self._sets(plan, ())

    def ended(self, plan: str, since: int) -> list[SubmittedJob]:
        """Return jobs that ended at a moment or later; each takes Buildbot time."""
        return self._sets(plan, (("complete", "true"), ("complete_at__ge", since)))

    def unfinished(self, plan: str) -> set[int]:
        """Return the jobs of a plan that are pending or running."""
        return {job.job for job in self._sets(plan, (("complete", "false"),))}

    def _sets(self, plan: str, more: tuple[tuple[str, object], ...]) -> list[SubmittedJob]:
        wanted = (("external_idstring__contains", f"{plan}/"), *more)
        found = self._ask("buildsets", _Sets, *wanted, *_fields(SubmittedJob)).buildsets
        return sorted((job for job in found if job.plan == plan), key=lambda job: job.bsid)

    def running(self, plan: str) -> dict[int, RunningBuild]:
        """Return the running jobs of a plan."""
        found = self._ask("builds", _Builds, ("complete", "false"), *_BUILD).builds
        return {
            props.job[0]: RunningBuild(build.buildid, props.machine[0], props.attempt[0])
            for build in found
            if (props := build.properties).plan[0] == plan
        }

    def last_attempt(self, submitted: SubmittedJob) -> LastAttempt:
        """Return the last attempt of a job, if there was one."""
        wanted = (("buildsetid", submitted.bsid), *_fields(_Request))
        builds: list[_Build] = []
        for request in self._ask("buildrequests", _Requests, *wanted).buildrequests:
            path = f"buildrequests/{request.buildrequestid}/builds"
            builds += self._ask(path, _Builds, *_BUILD).builds
        if not builds:
            return LastAttempt()
        last = max(builds, key=lambda build: build.buildid)
        page = f"{self._pages}#/builders/{last.builderid}/builds/{last.number}"
        props = last.properties
        held = last.state_string if props.verdict[0] in FINAL_VERDICTS else ""
        code = (not held and props.code[0]) or ElsewhereError.exit_code
        return LastAttempt(page, props.workername[0], code, held, self._log_of(last.buildid))

    def _log_of(self, build: int) -> list[str]:
        """Return the end of a job's log; the first character of each line is its stream."""
        path = f"builds/{build}/steps/run/logs"
        for log in self._ask(path, _Logs, ("slug", "stdio")).logs:
            first = max(0, log.num_lines - _LINES)
            window = (("offset", first), ("limit", _LINES))
            chunks = self._ask(f"{path}/stdio/contents", _Chunks, *window).logchunks
            return [line for chunk in chunks for line in chunk.content.splitlines()]
        return []

    def read(self, path: str) -> bytes:
        """Return the master's answer, as JSON."""
        try:
            answer = self._web.get(f"{self._here}api/v2/{path}")
        except ElsewhereError as error:
            msg = f"the master does not answer: {error}"
            hint = "check that it is running (`torchyard farm start`), and its twistd.log"
            raise ElsewhereError(msg, hint=hint, reason=error.reason) from error
        if not answer.found:
            msg = f"the master at {self._here} answers {answer.status} for {path}"
            raise HostError(msg, hint="see twistd.log in its directory")
        if not answer.data.startswith(b"{"):
            msg = f"the server at {self._here} is not the master of a farm"
            raise HostError(msg, hint="`web` in farm.toml says where the master listens")
        return answer.data

    def _ask(self, path: str, kind: type[T], *wanted: tuple[str, object]) -> T:
        data = self.read(f"{path}?{urlencode(wanted)}" if wanted else path)
        return msgspec.json.decode(data, type=kind)


def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Return the fields to request, which must include those of filters."""
    return tuple(("field", name) for name in kind.__struct_fields__)


_BUILD = (
    *_fields(_Build),
    *(("property", name) for name in _Properties.__struct_fields__),
)
