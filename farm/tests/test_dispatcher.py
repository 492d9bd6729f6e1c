"""What the dispatcher knows of machines when Buildbot asks for the next job."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from buildbot.master import BuildMaster
from buildbot.process.builder import Builder
from buildbot.process.properties import Properties
from twisted.internet import defer
from twisted.internet.task import Clock

from farm.tests.factories import machine
from farm.tests.stand_ins import stands_in
from torchyard_farm.master.dispatch.dispatcher import Dispatcher, JobBuildChooser
from torchyard_farm.master.status.worker_statuses import WorkerStatuses

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")

Hear = Callable[[object, dict[str, object]], None]


class StandIns:
    """Stand-ins for Buildbot: one connected worker, and one builder with an empty queue."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.ears: dict[tuple[object, ...], Hear] = {}
        self.worker = SimpleNamespace(
            name="w1",
            workerid=7,
            conn=object(),
            info=Properties(),
        )
        self.builder = SimpleNamespace(
            name="linux-x86_64",
            building=[],
            config=SimpleNamespace(workernames=["w1"]),
            getBuilderId=lambda: defer.succeed(1),
            getAvailableWorkers=lambda: [SimpleNamespace(worker=self.worker)],
        )
        self.master = SimpleNamespace(
            reactor=self.clock,
            mq=SimpleNamespace(startConsuming=self._listen),
            data=SimpleNamespace(get=lambda *_: defer.succeed([])),
            db=SimpleNamespace(
                pool=SimpleNamespace(do=lambda *_: defer.succeed([])),
                model=None,
                builders=SimpleNamespace(),
            ),
            workers=SimpleNamespace(workers={"w1": self.worker}),
            botmaster=SimpleNamespace(
                brd=SimpleNamespace(),
                builders={"linux-x86_64": self.builder},
            ),
        )
        self.dispatcher = Dispatcher(machines=[], folder=".", interval=1, statuses=WorkerStatuses())
        self.dispatcher.parent = SimpleNamespace(master=self.master)
        self.dispatcher.reconfigService([machine("w1")], str(folder), 20, WorkerStatuses())

    def _listen(self, ear: Hear, what: tuple[object, ...]) -> object:
        self.ears[what] = ear
        return defer.succeed(SimpleNamespace(stopConsuming=lambda: self.ears.pop(what)))

    def end_build(self, seconds: int, worker: int = 7) -> None:
        began, ended = (datetime.fromtimestamp(at, UTC) for at in (1000, 1000 + seconds))
        told = {"workerid": worker, "started_at": began, "complete_at": ended}
        self.ears["builds", None, "finished"](None, told)


@pytest.fixture
def around(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path)


def test_machines_are_not_looked_at_for_an_empty_queue(
    around: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(around.dispatcher, "capacities", pytest.fail)
    chooser = JobBuildChooser(
        around.dispatcher,
        stands_in(Builder, around.builder),
        stands_in(BuildMaster, around.master),
    )
    assert getattr(chooser.popNextBuild(), "result", None) == (None, None)


def test_a_machine_rests_from_the_end_of_its_job_whenever_one_looks(around: StandIns) -> None:
    assert not around.dispatcher.capacities()["w1"].is_cooling_down
    around.end_build(3600, worker=8)
    assert not around.dispatcher.capacities()["w1"].is_cooling_down, "it was not its job"
    around.end_build(3600)
    assert around.dispatcher.capacities()["w1"].is_cooling_down
    around.clock.advance(2.5)
    assert not around.dispatcher.capacities()["w1"].is_cooling_down
    around.end_build(3600)
    around.clock.advance(2.5)
    assert not around.dispatcher.capacities()["w1"].is_cooling_down, "nobody looked meanwhile"


def test_nothing_is_heard_after_the_end(around: StandIns) -> None:
    around.dispatcher.running = True
    around.dispatcher.stopService()
    assert not around.ears
    assert not around.clock.getDelayedCalls()
