"""Jobs that are submitted concurrently."""

import pytest
from twisted.internet import defer

from farm.tests.factories import KIND, made_plan
from torchyard_farm.master.plans.plan_scheduler import PlanScheduler

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")


def test_when_one_can_not_be_sent_the_others_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the tables are read before all are in there, and some are submitted twice."""
    scheduler = PlanScheduler(name="plans", builderNames=[KIND], windows={}, folder=".")
    waiting: list[defer.Deferred[None]] = [defer.Deferred() for _ in range(3)]
    monkeypatch.setattr(scheduler, "_submit", lambda _plan, job: waiting[job])
    plan = made_plan({0: [], 1: [], 2: []})
    failed: list[object] = []
    scheduler._submit_all([(plan, job) for job in range(3)]).addErrback(failed.append)
    waiting[0].callback(None)
    waiting[1].errback(ConnectionError("the database is away"))
    assert not failed
    waiting[2].callback(None)
    assert "the database is away" in str(failed)
