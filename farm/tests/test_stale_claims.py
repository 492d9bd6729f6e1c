"""Claims without a build, and the history of attempts."""

from collections.abc import Callable
from types import SimpleNamespace

from buildbot.db.model import Model
from buildbot.master import BuildMaster
from twisted.internet import defer
from twisted.internet.task import Clock

from farm.tests.stand_ins import stands_in
from farm.tests.tables import SUCCESS, Tables, tables_in_memory
from torchyard_farm.master.buildbot_fixes.stale_claims import StaleClaims
from torchyard_farm.master.db.attempts_db import AttemptHistory
from torchyard_farm.scheduling.attempts import AttemptRecord, AttemptVerdict


class StandInMaster:
    """Stand-in for Buildbot's master: its tables, and released claims."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.masterid = 1
        self.reactor = Clock()
        self.given_back: list[int] = []
        self.builder = SimpleNamespace(building=[])
        self.db = SimpleNamespace(model=Model, pool=SimpleNamespace(do=self._ask))
        self.botmaster = SimpleNamespace(
            builders={"linux": self.builder}, remove_in_progress_buildrequest=lambda _: None
        )
        updates = SimpleNamespace(unclaimBuildRequests=self._give_back)
        self.data = SimpleNamespace(updates=updates)

    def _ask(
        self, question: Callable[[object, object, int], object], model: object, master: int
    ) -> defer.Deferred[object]:
        return defer.succeed(question(self._tables.connection, model, master))

    def _give_back(self, requests: list[int]) -> defer.Deferred[None]:
        self.given_back.extend(requests)
        return defer.succeed(None)

    def begin(self, number: int) -> None:
        self.builder.building.append(SimpleNamespace(requests=[SimpleNamespace(id=number)]))


def test_what_is_claimed_and_not_done_is_given_back_after_a_while() -> None:
    with tables_in_memory() as tables:
        tables.add("masters", id=2, name="other", name_hash="other", active=1, last_active=0)
        master, forgotten = StandInMaster(tables), StaleClaims()
        begun, late, left = (tables.send(f"plan/{number}") for number in (1, 2, 3))
        for request in (begun, late, left, tables.send("plan/4", SUCCESS)):
            tables.claim(request)
        tables.claim(tables.send("plan/5"), master=2)
        master.begin(begun)
        forgotten.release(stands_in(BuildMaster, master))
        master.reactor.advance(50)
        forgotten.release(stands_in(BuildMaster, master))
        assert master.given_back == []
        master.reactor.advance(20)
        master.begin(late)  # it had just been claimed
        forgotten.release(stands_in(BuildMaster, master))
        assert master.given_back == [left]


def test_what_is_claimed_when_a_master_stands_still_is_not_given_back_at_once() -> None:
    """It is about to start."""
    with tables_in_memory() as tables:
        master, forgotten = StandInMaster(tables), StaleClaims()
        tables.claim(request := tables.send("plan/1"))
        forgotten.release(stands_in(BuildMaster, master))
        master.reactor.advance(1000)
        forgotten.release(stands_in(BuildMaster, master))
        assert master.given_back == []
        master.reactor.advance(1)
        forgotten.release(stands_in(BuildMaster, master))
        assert master.given_back == [request]


def test_a_try_that_is_remembered_while_all_are_read_is_not_forgotten() -> None:
    """When a master starts there are several concurrent calls; each reads the tables."""
    answers: list[defer.Deferred[object]] = []

    def ask(*_: object) -> defer.Deferred[object]:
        answers.append(defer.Deferred())
        return answers[-1]

    master = SimpleNamespace(db=SimpleNamespace(model=Model, pool=SimpleNamespace(do=ask)))
    tries, found = AttemptHistory(shared=False), list[object]()
    for request in (1, 2):
        tries.cached(stands_in(BuildMaster, master), request)
    answers[0].callback({})
    ended = [AttemptRecord("w1", AttemptVerdict.AGAIN, 99.0)]
    tries.remember(1, ended)
    answers[1].callback({})
    tries.cached(stands_in(BuildMaster, master), 1).addCallback(found.extend)
    assert found == ended
