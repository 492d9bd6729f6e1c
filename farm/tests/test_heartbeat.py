"""Polls of workers: which are silent, what they run, and which jobs are wanted."""

import json
from collections.abc import Iterator
from types import SimpleNamespace

import msgspec
import pytest
import sqlalchemy as sa
from buildbot.db.model import Model
from buildbot.master import BuildMaster
from buildbot.process.properties import Properties
from buildbot.worker import AbstractWorker
from twisted.internet import defer
from twisted.internet.task import Clock

from farm.tests.stand_ins import stands_in
from farm.tests.tables import ENDED, RETRY, Tables, tables_in_memory
from torchyard_farm.master.db.attempts_db import AttemptHistory
from torchyard_farm.master.status.heartbeat import Heartbeat
from torchyard_farm.master.status.worker_statuses import WorkerStatuses
from torchyard_farm.scheduling.attempts import AttemptVerdict
from torchyard_farm.scheduling.resources import Resources
from torchyard_farm.scheduling.worker_status import RunningJob, WorkerStatus

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")

INTERVAL, PATIENCE = 20, 30


class StandInAgent:
    """Stand-in for Buildbot's worker, its connection, and the other end."""

    def __init__(self, name: str, machine: str | None) -> None:
        self.name = name
        self.properties = Properties(machine=machine)
        self.info = Properties()
        self.jobs: dict[str, RunningJob] | None = {}
        self.asked = 0
        self.unanswered: list[defer.Deferred[str]] = []
        self.ended: list[str] = []
        self.conn: object = self
        self.mind = self.broker = self.transport = self
        self.disconnected = False

    def callRemote(self, what: str, *args: str) -> defer.Deferred[str]:  # noqa: N802
        if what == "end":
            self.ended += args
            return defer.succeed("")
        assert what == "look"
        self.asked += 1
        if self.jobs is None:
            self.unanswered.append(defer.Deferred())
            return self.unanswered[-1]
        look = WorkerStatus(memory=1, disk=1, jobs=self.jobs)
        return defer.succeed(msgspec.json.encode(look).decode())

    def abortConnection(self) -> None:  # noqa: N802
        self.conn = None


class StandInMaster:
    """Stand-in for Buildbot's master: its tables, workers and clock."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.reactor = Clock()
        self.reactor.advance(ENDED + 10)
        self.statuses = WorkerStatuses()
        self.agents: dict[str, StandInAgent] = {}
        self.workers = SimpleNamespace(connections={}, workers=self.agents)
        self.builder = SimpleNamespace(building=[])
        self.botmaster = SimpleNamespace(builders={"linux": self.builder})
        self.masterid = 1
        pool = SimpleNamespace(do=self._ask, do_with_transaction=self._ask)
        self.db = SimpleNamespace(model=Model, pool=pool)
        self.data = SimpleNamespace(updates=SimpleNamespace(setBuildProperty=self._change))

    def _ask(self, question: object, *args: object) -> defer.Deferred[object]:
        assert callable(question)
        return defer.succeed(question(self.tables.connection, *args))

    def _change(self, build: int, name: str, value: str, _: str) -> defer.Deferred[None]:
        table = Model.build_properties
        this = sa.and_(table.c.buildid == build, table.c.name == name)
        change = sa.update(table).where(this).values(value=json.dumps(value))
        self.tables.connection.execute(change)
        return defer.succeed(None)

    def connect(self, name: str, machine: str | None) -> StandInAgent:
        self.agents[name] = StandInAgent(name, machine)
        return self.agents[name]

    def send(self, fingerprint: str) -> int:
        """Add a job that is wanted."""
        request = self.tables.send("plan/1")
        self.tables.give(request, fingerprint=fingerprint)
        return request

    def follow(self, machine: str, fingerprint: str) -> None:
        told = {"machine": machine, "fingerprint": fingerprint}
        self.builder.building.append(SimpleNamespace(getProperty=told.get))

    def verdict(self, build: int) -> str:
        table = Model.build_properties
        this = sa.and_(table.c.buildid == build, table.c.name == "verdict")
        asked = sa.select(table.c.value).where(this)
        return str(json.loads(self.tables.connection.execute(asked).scalar_one()))

    def beat(self, tries: AttemptHistory) -> None:
        """Start the heartbeat, and poll once."""
        heartbeat = Heartbeat(interval=1, patience=1, statuses=self.statuses, attempts=tries)
        heartbeat.parent = SimpleNamespace(master=self)
        heartbeat.reconfigService(INTERVAL, PATIENCE, self.statuses, tries)
        self.reactor.advance(INTERVAL)


@pytest.fixture
def master() -> Iterator[StandInMaster]:
    with tables_in_memory() as tables:
        yield StandInMaster(tables)


def test_who_is_silent_is_cut_off_when_the_patience_is_over(master: StandInMaster) -> None:
    silent, other = master.connect("w1", "m1"), master.connect("w2", "m2")
    calendar = master.connect("calendar", None)
    silent.jobs = None
    master.beat(AttemptHistory(shared=False))
    master.reactor.pump([1] * (PATIENCE - 1))
    assert silent.conn is not None
    assert other.asked == 2, "nobody waits for another one"
    master.reactor.advance(1)
    assert silent.conn is None
    assert other.conn is not None
    asked = silent.asked
    master.reactor.pump([1] * INTERVAL)
    assert (silent.asked, other.asked, calendar.asked) == (asked, 3, 0)


def test_nobody_is_cut_off_because_the_master_stood_still(master: StandInMaster) -> None:
    """Answers that arrived meanwhile are read only after all due timers."""
    agent = master.connect("w1", "m1")
    agent.jobs = None
    master.beat(AttemptHistory(shared=False))
    master.reactor.advance(100 * PATIENCE)
    assert agent.conn is not None
    for answer in agent.unanswered:
        answer.callback("")
    master.reactor.pump([1] * (INTERVAL - 1))
    assert agent.conn is not None


def test_agents_that_were_connected_when_their_master_was_killed_are_not_there(
    master: StandInMaster,
) -> None:
    """Until they reconnect. Those of other masters are not touched."""
    tables = master.tables
    tables.add("masters", id=2, name="other", name_hash="other", active=1, last_active=0)
    for number in (1, 2):
        tables.add("connected_workers", id=number, masterid=number, workerid=1)
    master.beat(AttemptHistory(shared=False))
    known = Model.connected_workers
    assert tables.connection.execute(sa.select(known.c.masterid)).scalars().all() == [2]


def test_what_nobody_wants_is_ended_once_for_each_machine(master: StandInMaster) -> None:
    master.send("aa11")
    master.follow("m1", "cc33")
    first, second = master.connect("w1-1", "m1"), master.connect("w1-2", "m1")
    first.jobs = second.jobs = {
        "aa11": RunningJob(name="core-aa", takes=Resources(2, 2)),
        "bb22": RunningJob(name="core-bb", takes=Resources(4, 4)),
        "cc33": RunningJob(name="core-cc", takes=Resources(8, 8)),
        "dd44": RunningJob(name="core-dd"),
    }
    master.beat(AttemptHistory(shared=False))
    assert (first.ended, second.ended) == (["core-bb", "core-dd"], [])
    assert master.statuses.orphans("m1", ()) == {"aa11": Resources(2, 2), "bb22": Resources(4, 4)}
    first.jobs = second.jobs = {}
    master.reactor.advance(INTERVAL)
    assert master.statuses.orphans("m1", ()) == {}


@pytest.mark.parametrize(
    ("age", "verdict"), [(INTERVAL + 10, AttemptVerdict.CUT), (INTERVAL + 9, AttemptVerdict.LOST)]
)
@pytest.mark.parametrize("shared", [True, False])
def test_a_machine_comes_back_with_a_job_unless_it_began_it_anew(
    master: StandInMaster, shared: bool, age: int, verdict: AttemptVerdict
) -> None:
    request = master.send("aa11")
    tries, found = AttemptHistory(shared=shared), list[object]()
    if shared:
        tries.cached(
            stands_in(BuildMaster, master), request
        )  # another master lost the machine afterwards
    build = master.tables.build(request, RETRY, "lost", machine="m1", fingerprint="aa11")
    if not shared:
        tries.cached(stands_in(BuildMaster, master), request)
    master.connect("w1", "m1").jobs = {"aa11": RunningJob(name="core-aa", age=age)}
    master.connect("w2", "m2").jobs = {"aa11": RunningJob(name="core-aa", age=age + 1)}
    master.beat(tries)
    assert master.verdict(build) == verdict
    tries.cached(stands_in(BuildMaster, master), request).addCallback(found.extend)
    assert found == [("m1", verdict, ENDED)] or (shared and verdict is AttemptVerdict.LOST)


def test_a_machine_that_is_gone_holds_nothing(master: StandInMaster) -> None:
    """Otherwise an on-demand machine seems full, and is never started again."""
    first, second = master.connect("w1-1", "m1"), master.connect("w1-2", "m1")
    first.jobs = second.jobs = {"aa11": RunningJob(name="core-aa", takes=Resources(2, 2))}
    master.beat(AttemptHistory(shared=False))
    first.abortConnection()
    master.reactor.advance(INTERVAL)
    assert master.statuses.orphans("m1", ()) == {"aa11": Resources(2, 2)}
    second.abortConnection()
    master.reactor.advance(INTERVAL)
    assert master.statuses.orphans("m1", ()) == {}
    assert master.statuses.get("m1") is not None


def test_what_is_told_at_first_is_older_than_what_is_told_then(master: StandInMaster) -> None:
    agent = master.connect("w1", "m1")
    agent.info = Properties(look='{"memory": 7, "disk": 7}')
    master.beat(AttemptHistory(shared=False))
    master.statuses.introduce("m1", stands_in(AbstractWorker, agent), ())
    assert master.statuses.get("m1") == WorkerStatus(memory=1, disk=1)


def test_what_is_told_at_first_is_heard_once(master: StandInMaster) -> None:
    worker = SimpleNamespace(name="w1", conn=object())
    for disk in (1, 2):
        worker.info = Properties(look=f'{{"memory": 1, "disk": {disk}}}')
        master.statuses.introduce("m1", stands_in(AbstractWorker, worker), ())
        assert master.statuses.get("m1") == WorkerStatus(memory=1, disk=1)
    worker.conn = object()
    master.statuses.introduce("m1", stands_in(AbstractWorker, worker), ())
    assert master.statuses.get("m1") == WorkerStatus(memory=1, disk=2)
