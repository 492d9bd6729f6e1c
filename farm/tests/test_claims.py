"""Jobs that a master has claimed and does not do go back into the queue."""

from collections.abc import Callable
from types import SimpleNamespace

import sqlalchemy as sa
from buildbot.db.model import Model
from twisted.internet import defer
from twisted.internet.task import Clock

from torchyard_farm.master.forgotten import Forgotten


class StandInMaster:
    """In place of Buildbot's master: its tables, and what is begun and given back."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.masterid = 1
        self.reactor = Clock()
        self.given_back: list[int] = []
        self.builder = SimpleNamespace(building=[])
        self.db = SimpleNamespace(model=Model, pool=SimpleNamespace(do=self._ask))
        self.botmaster = SimpleNamespace(
            builders={"linux": self.builder}, remove_in_progress_buildrequest=lambda _: None
        )
        updates = SimpleNamespace(unclaimBuildRequests=self.given_back.extend)
        self.data = SimpleNamespace(updates=updates)
        for number in (1, 2):
            self._add("masters", id=number, name=str(number), name_hash=str(number), active=1)

    def _ask(
        self, question: Callable[[object, object, int], object], model: object, master: int
    ) -> defer.Deferred[object]:
        return defer.succeed(question(self.connection, model, master))

    def _add(self, table: str, **values: object) -> None:
        known = {"last_active": 0} if table == "masters" else {}
        self.connection.execute(sa.insert(getattr(Model, table)).values(**known, **values))

    def claim(self, number: int, *, master: int = 1, over: bool = False) -> None:
        when = {"submitted_at": 1, "complete": int(over)}
        self._add("buildsets", id=number, **when)
        self._add("buildrequests", id=number, buildsetid=number, builderid=7, **when)
        self._add("buildrequest_claims", brid=number, masterid=master, claimed_at=1)

    def begin(self, number: int) -> None:
        self.builder.building.append(SimpleNamespace(requests=[SimpleNamespace(id=number)]))


def test_what_is_claimed_and_not_done_is_given_back_after_a_while() -> None:
    engine = sa.create_engine("sqlite://")
    Model.metadata.create_all(engine)
    with engine.begin() as connection:
        master, forgotten = StandInMaster(connection), Forgotten()
        for number in (1, 2, 3):
            master.claim(number)
        master.claim(4, over=True)
        master.claim(5, master=2)
        master.begin(1)
        forgotten.give_back(master)
        master.reactor.advance(50)
        forgotten.give_back(master)
        assert master.given_back == []
        master.reactor.advance(20)
        master.begin(2)  # it had just been claimed
        forgotten.give_back(master)
        assert master.given_back == [3]
    engine.dispose()
