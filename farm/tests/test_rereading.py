"""A scheduler that has to read everything again, as its configuration has changed."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from twisted.internet import defer

from farm.tests.made import KIND, made_plan
from torchyard_farm.jobs.board import Told
from torchyard_farm.jobs.plans import Plans
from torchyard_farm.master.scheduler import PlanScheduler

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")


def test_a_plan_that_is_read_meanwhile_is_read_again(tmp_path: Path) -> None:
    """Else a job that ends between the two would be waited for, and for ever."""
    questions: list[defer.Deferred[object]] = []

    def ask(*_: object) -> defer.Deferred[object]:
        questions.append(defer.Deferred())
        return questions[-1]

    Plans(tmp_path).add(made_plan({0: []}))
    scheduler = PlanScheduler(name="plans", builderNames=[KIND], windows={}, folder=".")
    scheduler.parent = SimpleNamespace(
        master=SimpleNamespace(
            db=SimpleNamespace(pool=SimpleNamespace(do=ask), model=None),
            service_manager=SimpleNamespace(namedServices={}),
        )
    )
    scheduler.reconfigService([KIND], {KIND: 1}, str(tmp_path))
    scheduler._pump()
    scheduler._hear((), {"external_idstring": "plan/0", "results": 0})
    scheduler.reconfigService([KIND], {KIND: 2}, str(tmp_path))
    questions[0].callback(([Told(0, over=False, good=False)], []))
    scheduler._pump()
    questions[1].callback(([Told(0, over=True, good=True)], []))
    assert Plans(tmp_path).ended() == ["plan"]
