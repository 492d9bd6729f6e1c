"""Plans are synchronized between masters of one database."""

import random
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Concatenate, ParamSpec, TypeVar

import pytest
import sqlalchemy as sa
from buildbot.db.model import Model
from buildbot.db.state import StateConnectorComponent
from buildbot.master import BuildMaster
from buildbot.process.cache import CacheManager
from twisted.internet import defer
from twisted.internet.task import Clock

from farm.tests.factories import made_plan
from farm.tests.stand_ins import stands_in
from torchyard_farm.master.db.shared_state import SharedState
from torchyard_farm.master.peers.plan_sync import PLANS, sync_plans, withdraw_plans
from torchyard_farm.scheduling.plan_differences import ClosedRows, PlanMark, compare_plans
from torchyard_farm.scheduling.plans import Plans

P = ParamSpec("P")
T = TypeVar("T")

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")


class Database:
    """Buildbot's tables in memory, queried synchronously by the masters of a test."""

    def __init__(self, connection: sa.Connection) -> None:
        pool = SimpleNamespace(do=self._do, do_with_transaction=self._do, engine=connection.engine)
        self.db = SimpleNamespace(model=Model, pool=pool, master=self)
        self.caches = CacheManager()
        self.reactor = Clock()
        self.db.state = StateConnectorComponent(self.db)
        self._connection = connection
        self.master = stands_in(BuildMaster, self)

    def _do(
        self, question: Callable[Concatenate[sa.Connection, P], T], *given: P.args, **more: P.kwargs
    ) -> defer.Deferred[T]:
        return defer.succeed(question(self._connection, *given, **more))

    def settle(self, *masters: Plans) -> None:
        for here in masters:
            done(sync_plans(self.master, here))

    def names(self, drawer: str) -> list[str]:
        found = done(SharedState(self.master, drawer).names())
        assert isinstance(found, list)
        return sorted(found)

    def is_settled(self, here: Plans) -> bool:
        marks = {name: mark for mark in PlanMark for name in self.names(mark)}
        return not any(compare_plans(here, self.names(PLANS), marks))


def done(
    asked: "defer.Deferred[T] | Coroutine[defer.Deferred[object], object, T]",
) -> T:
    """Return the result of a call that has to be done by now."""
    asked = defer.ensureDeferred(asked) if isinstance(asked, Coroutine) else asked
    found: list[T] = []
    asked.addCallback(found.append)
    asked.addErrback(lambda why: why.raiseException())
    (result,) = found
    return result


@pytest.fixture
def database() -> Iterator[Database]:
    engine = sa.create_engine("sqlite://")
    Model.metadata.create_all(engine)
    with engine.connect() as connection:
        yield Database(connection)
    engine.dispose()


def test_a_plan_comes_to_all_masters_whichever_it_was_given_to(
    database: Database, tmp_path: Path
) -> None:
    first, second = Plans(tmp_path / "1"), Plans(tmp_path / "2")
    second.add(made_plan({0: []}, name="p"))
    database.settle(first, second, first)
    assert first.read("p") == second.read("p")
    assert database.is_settled(first)
    assert database.is_settled(second)


def test_a_plan_that_ends_at_one_master_ends_at_all(database: Database, tmp_path: Path) -> None:
    first, second = Plans(tmp_path / "1"), Plans(tmp_path / "2")
    first.add(made_plan({0: []}, name="p"))
    database.settle(first, second)
    second.cancel("p")
    database.settle(second, first)
    assert first.cancelled() == ["p"]
    first.end("p")
    database.settle(first, second)
    assert second.open() == second.cancelled() == []
    assert second.ended() == ["p"]
    assert database.is_settled(first)
    assert database.is_settled(second)


def test_a_new_master_never_begins_a_plan_that_is_over(database: Database, tmp_path: Path) -> None:
    first, late = Plans(tmp_path / "1"), Plans(tmp_path / "2")
    first.add(made_plan({0: []}, name="p"))
    first.end("p")
    database.settle(first, first, late)
    assert late.open() == []
    assert late.ended() == ["p"]


def test_in_any_order_all_know_the_same_in_the_end(database: Database, tmp_path: Path) -> None:
    chance = random.Random(3)
    masters = [Plans(tmp_path / str(number)) for number in range(3)]
    names = [f"p{number}" for number in range(6)]
    for name in names:
        chance.choice(masters).add(made_plan({0: []}, name=name))
    for _ in range(200):
        master = chance.choice(masters)
        database.settle(master)
        if master.open() and chance.random() < 0.1:
            name = chance.choice(master.open())
            (master.cancel if chance.random() < 0.5 else master.end)(name)
    database.settle(*masters, *masters)
    assert all(map(database.is_settled, masters))
    assert len({tuple(master.ended()) for master in masters}) == 1
    assert sorted(masters[0].open() + masters[0].ended()) == names


def test_a_plan_that_is_forgotten_never_comes_back(database: Database, tmp_path: Path) -> None:
    first, second, asleep = (Plans(tmp_path / str(number)) for number in range(3))
    for name in ("old", "open"):
        first.add(made_plan({0: []}, name=name))
    database.settle(first, second, asleep)
    first.end("old")
    database.settle(first, second)
    done(withdraw_plans(database.master, ["old", "open"]))
    database.settle(second, first, asleep, first)
    for master in (first, second, asleep):
        assert (master.open(), master.ended()) == (["open"], [])
        assert database.is_settled(master)
    assert database.names(PLANS) == ["open"], "it is not known to be over"


def test_a_plan_that_nobody_can_read_disturbs_no_other(database: Database, tmp_path: Path) -> None:
    first, second = Plans(tmp_path / "1"), Plans(tmp_path / "2")
    for name in ("a", "torn", "z"):
        first.add(made_plan({0: []}, name=name))
    (tmp_path / "1/plans/torn.json").write_bytes(b"\xff{")
    database.settle(first, second)
    assert second.open() == ["a", "z"]


def test_whatever_is_closed_is_told_at_least_once() -> None:
    chance = random.Random(5)
    watch, told = ClosedRows(), set[int]()
    assert watch.update({}) == []  # earlier rows are not news for a new master
    rows: dict[int, bool] = {}
    late: list[int] = []  # numbers that are assigned, and committed later than others
    for number in range(1, 3000):
        late.append(number)
        while len(late) > 3:
            rows[late.pop(chance.randrange(len(late)))] = False
        for row in [row for row, closed in rows.items() if not closed]:
            rows[row] = chance.random() < 0.2
        if chance.random() < 0.3:
            seen = {row: closed for row, closed in rows.items() if not closed or row > watch.since}
            told |= set(watch.update(seen))
    seen = {row: closed for row, closed in rows.items() if not closed or row > watch.since}
    told |= set(watch.update(seen))
    assert told == {row for row, closed in rows.items() if closed}
