"""What a running master keeps, and what it reads again, when it is reconfigured."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from twisted.internet import defer

from farm.tests.factories import KIND, made_plan
from torchyard_farm.master.configure import configure
from torchyard_farm.master.plans.plan_scheduler import PlanScheduler
from torchyard_farm.master.status.heartbeat import Heartbeat
from torchyard_farm.scheduling.plan_tracker import JobStatus
from torchyard_farm.scheduling.plans import Plans
from torchyard_farm.settings.farm import load_farm
from torchyard_farm.settings.layout import farm_text, make_secrets

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")


def test_a_plan_that_is_read_meanwhile_is_read_again(tmp_path: Path) -> None:
    """Otherwise the end of a job between the two is missed for ever."""
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
    scheduler._on_complete((), {"external_idstring": "plan/0", "results": 0})
    scheduler.reconfigService([KIND], {KIND: 2}, str(tmp_path))
    questions[0].callback(([JobStatus(0, over=False, good=False)], []))
    scheduler._pump()
    questions[1].callback(([JobStatus(0, over=True, good=True)], []))
    assert Plans(tmp_path).ended() == ["plan"]


def heartbeat_of(config: dict[str, object]) -> Heartbeat:
    services = config["services"]
    assert isinstance(services, list)
    (found,) = (one for one in services if isinstance(one, Heartbeat))
    return found


def test_builds_that_run_and_a_new_configuration_know_the_same_tries(tmp_path: Path) -> None:
    """Otherwise an attempt that ends later is unknown: it has no pause, and does not count."""
    text = farm_text("torchyard.toml", "sqlite:///state.sqlite", ["linux-x86_64"])
    (tmp_path / "farm.toml").write_text(text, encoding="utf-8")
    make_secrets(tmp_path, load_farm(tmp_path))
    first, second = (heartbeat_of(configure(str(tmp_path))) for _ in range(2))
    assert first is not second
    assert first._config_kwargs["attempts"] is second._config_kwargs["attempts"]
