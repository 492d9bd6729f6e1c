"""Jobs whose inputs are missing from the store when they start."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from buildbot.db.model import Model
from buildbot.master import BuildMaster
from buildbot.process.builder import Builder
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.properties import Properties
from buildbot.process.workerforbuilder import AbstractWorkerForBuilder
from twisted.internet import defer
from twisted.internet.task import Clock

from farm.tests.factories import made_plan
from farm.tests.stand_ins import stands_in
from farm.tests.tables import RETRY, SUCCESS, Tables, tables_in_memory
from torchyard.model.event import Ended
from torchyard.store.store import Store
from torchyard_farm.cli.engine import _Follower
from torchyard_farm.client.web_api import SubmittedJob
from torchyard_farm.master.attempts.retry_policy import RetryPolicy
from torchyard_farm.master.db.attempts_db import AttemptHistory
from torchyard_farm.master.plans.submit import resubmit_inputs
from torchyard_farm.scheduling.attempts import RetryLimits
from torchyard_farm.scheduling.plans import Plans

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")


def test_who_follows_a_plan_is_told_of_a_result_that_is_gone_already(tmp_path: Path) -> None:
    """It was found damaged, for example, and is rebuilt."""
    (tmp_path / "farm.toml").write_text('file = "torchyard.toml"\n', encoding="utf-8")
    plan, told = made_plan({0: []}), list[object]()
    store = Store.at(str(tmp_path / "store"))
    follower = _Follower(plan, store, tmp_path, tmp_path, told.append)
    sent = SubmittedJob(
        bsid=1, external_idstring="plan/0", complete=True, complete_at=1, results=SUCCESS
    )
    follower._end(0, sent)
    (ended,) = told
    assert isinstance(ended, Ended)
    assert (ended.outcome, ended.why) == ("built", "its result is gone from the store")


def test_what_many_jobs_lack_is_sent_once(tables: Tables) -> None:
    questions: list[tuple[defer.Deferred[object], Callable[[], object]]] = []

    def ask(
        question: Callable[[object, object, object], object], model: object, names: object
    ) -> defer.Deferred[object]:
        questions.append((defer.Deferred(), partial(question, tables.connection, model, names)))
        return questions[-1][0]

    def add(*, external_idstring: str, **_: object) -> defer.Deferred[object]:
        return defer.succeed(tables.send(external_idstring))

    updates = SimpleNamespace(findBuilderId=lambda _: defer.succeed(7), addBuildset=add)
    stamps = SimpleNamespace(findSourceStampId=lambda **_: defer.succeed(1))
    db = SimpleNamespace(model=Model, pool=SimpleNamespace(do=ask), sourcestamps=stamps)
    master = stands_in(BuildMaster, SimpleNamespace(db=db, data=SimpleNamespace(updates=updates)))
    plan = made_plan({0: [], 1: [0], 2: [0], 3: [0]})
    sent = [resubmit_inputs(master, plan, job) for job in (1, 2, 3)]
    while questions:
        asked = questions.copy()
        questions.clear()
        for answer, question in [(answer, question()) for answer, question in asked]:
            answer.callback(question)
    assert all(one.called for one in sent)
    names = Model.buildsets.c.external_idstring
    assert tables.connection.execute(sa.select(names)).scalars().all() == ["plan/0"]


@pytest.fixture
def tables() -> Iterator[Tables]:
    with tables_in_memory() as tables:
        yield tables


def test_a_job_is_not_tried_before_its_input_is_made(tables: Tables, tmp_path: Path) -> None:
    """Otherwise it is given up after three attempts, while its input may take hours."""
    Plans(tmp_path).add(made_plan({0: [], 1: [0]}))
    tables.send("plan/0", SUCCESS)
    request = tables.send("plan/1")
    tables.build(request, RETRY, "again")
    pool = SimpleNamespace(do=lambda ask, *given: defer.succeed(ask(tables.connection, *given)))
    master = SimpleNamespace(reactor=Clock(), db=SimpleNamespace(model=Model, pool=pool))
    master.reactor.advance(10_000)
    told = Properties(plan="plan", job=1)
    worker = SimpleNamespace(worker=SimpleNamespace(properties=Properties(machine="w")))
    botmaster = SimpleNamespace(maybeStartBuildsForBuilder=lambda _: None)
    builder = SimpleNamespace(name="linux", master=master, workers=[worker], botmaster=botmaster)
    policy = RetryPolicy(RetryLimits(), AttemptHistory(shared=False), Plans(tmp_path))

    def may_begin() -> list[object]:
        found: list[object] = []
        given = SimpleNamespace(id=request, properties=told)
        asked = policy(
            stands_in(Builder, builder),
            stands_in(AbstractWorkerForBuilder, worker),
            stands_in(BuildRequest, given),
        )
        asked.addCallback(found.append)
        return found

    assert may_begin() == [True]
    again = tables.send("plan/0")
    assert may_begin() == [False]
    requests = Model.buildrequests
    over = sa.update(requests).where(requests.c.id == again).values(complete=1)
    tables.connection.execute(over)
    assert may_begin() == [True]
