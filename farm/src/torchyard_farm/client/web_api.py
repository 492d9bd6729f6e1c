"""What a master tells whoever asks: its web interface, in the few questions that we have."""

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
"""What Buildbot calls success, and success with warnings."""

FAILED = 2
CANCELLED = 6

_LINES = 200
"""So many lines of a log are read, from its end: what a job says when it fails is shorter."""

T = TypeVar("T")


class SubmittedJob(msgspec.Struct):
    """A job that was sent, or sent again: a buildset, whose name is PLAN/NUMBER."""

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
    def told(self) -> JobStatus:
        return JobStatus(self.job, self.complete, self.results in GOOD)


def track_plan(plan: FarmPlan, sent: Iterable[SubmittedJob]) -> PlanTracker:
    """How a plan stands, from what was sent of it."""
    board = PlanTracker({})
    board.add(plan, (one.told for one in sent))
    return board


class RunningBuild(NamedTuple):
    """A job that runs: in which build, and where, which is not known in its first moment."""

    build: int
    machine: str
    attempt: int = 1


class LastAttempt(NamedTuple):
    """How a job was tried at last: its page, its exit code, and its log's end."""

    page: str = ""
    worker: str = ""
    code: int = ElsewhereError.exit_code
    held: str = ""
    """Why it is not tried any more, if that is not its own fault."""
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
        self._web = HttpClient(tries=1)  # who follows a plan asks again by itself

    def workers(self) -> set[str]:
        """The names of all agents that are connected."""
        found = self._ask("workers", _Workers).workers
        return {worker.name for worker in found if worker.connected_to}

    def sent(self, plan: str) -> list[SubmittedJob]:
        """All jobs of a plan that were sent, in this order."""
        return self._sets(plan, ())

    def ended(self, plan: str, since: int) -> list[SubmittedJob]:
        """Those that ended at some moment or later; Buildbot pays for each that it tells of."""
        return self._sets(plan, (("complete", "true"), ("complete_at__ge", since)))

    def out(self, plan: str) -> set[int]:
        """The jobs of a plan that were sent, and are not over: those that wait as well."""
        return {one.job for one in self._sets(plan, (("complete", "false"),))}

    def _sets(self, plan: str, more: tuple[tuple[str, object], ...]) -> list[SubmittedJob]:
        wanted = (("external_idstring__contains", f"{plan}/"), *more)
        found = self._ask("buildsets", _Sets, *wanted, *_fields(SubmittedJob)).buildsets
        return sorted((one for one in found if one.plan == plan), key=lambda one: one.bsid)

    def going(self, plan: str) -> dict[int, RunningBuild]:
        """The jobs of a plan that run."""
        found = self._ask("builds", _Builds, ("complete", "false"), *_BUILD).builds
        return {
            told.job[0]: RunningBuild(build.buildid, told.machine[0], told.attempt[0])
            for build in found
            if (told := build.properties).plan[0] == plan
        }

    def last_try(self, sent: SubmittedJob) -> LastAttempt:
        """How a job was tried at last, if it ever was."""
        wanted = (("buildsetid", sent.bsid), *_fields(_Request))
        builds: list[_Build] = []
        for request in self._ask("buildrequests", _Requests, *wanted).buildrequests:
            path = f"buildrequests/{request.buildrequestid}/builds"
            builds += self._ask(path, _Builds, *_BUILD).builds
        if not builds:
            return LastAttempt()
        last = max(builds, key=lambda build: build.buildid)
        page = f"{self._pages}#/builders/{last.builderid}/builds/{last.number}"
        told = last.properties
        held = last.state_string if told.verdict[0] in FINAL_VERDICTS else ""
        code = (not held and told.code[0]) or ElsewhereError.exit_code
        return LastAttempt(page, told.workername[0], code, held, self._log_of(last.buildid))

    def _log_of(self, build: int) -> list[str]:
        """The end of what a job said; a letter before each line tells by which stream."""
        path = f"builds/{build}/steps/run/logs"
        for log in self._ask(path, _Logs, ("slug", "stdio")).logs:
            first = max(0, log.num_lines - _LINES)
            asked = (("offset", first), ("limit", _LINES))
            chunks = self._ask(f"{path}/stdio/contents", _Chunks, *asked).logchunks
            return [line for chunk in chunks for line in chunk.content.splitlines()]
        return []

    def read(self, path: str) -> bytes:
        """What the master answers, as JSON."""
        try:
            answer = self._web.get(f"{self._here}api/v2/{path}")
        except ElsewhereError as error:
            msg = f"the master does not answer: {error}"
            hint = "is it running? `torchyard farm start` starts it, twistd.log tells what it does"
            raise ElsewhereError(msg, hint=hint, reason=error.reason) from error
        if not answer.found:
            msg = f"the master at {self._here} answers {answer.status} for {path}"
            raise HostError(msg, hint="look into twistd.log in its directory")
        if not answer.data.startswith(b"{"):
            msg = f"what answers at {self._here} is no master of a farm"
            raise HostError(msg, hint="`web` in farm.toml says where the master listens")
        return answer.data

    def _ask(self, path: str, kind: type[T], *wanted: tuple[str, object]) -> T:
        data = self.read(f"{path}?{urlencode(wanted)}" if wanted else path)
        return msgspec.json.decode(data, type=kind)


def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """What we want to know; Buildbot wants everything among it that something is chosen by."""
    return tuple(("field", name) for name in kind.__struct_fields__)


_BUILD = (
    *_fields(_Build),
    *(("property", name) for name in _Properties.__struct_fields__),
)
