"""Builds that are interrupted while they start: no job and no worker is blocked for ever."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from buildbot.master import BuildMaster
from buildbot.process.builder import Builder
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.properties import Properties
from buildbot.process.results import CANCELLED, RETRY
from buildbot.process.workerforbuilder import AbstractWorkerForBuilder
from twisted.internet import defer
from twisted.internet.task import Clock

from farm.tests.stand_ins import stands_in
from torchyard_farm.master.attempts.job_build import JobBuild
from torchyard_farm.master.attempts.retry_policy import RetryPolicy
from torchyard_farm.master.db.attempts_db import VERDICT, AttemptHistory
from torchyard_farm.master.dispatch.dispatcher import Dispatcher, JobBuildChooser
from torchyard_farm.master.status.worker_statuses import WorkerStatuses
from torchyard_farm.scheduling.attempts import AttemptVerdict, RetryLimits
from torchyard_farm.scheduling.plans import Plans

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")


def answer(result: object = None) -> object:
    return lambda *_args, **_more: defer.succeed(result)


class StandIns:
    """Stand-ins for Buildbot's master, builder and worker."""

    def __init__(self, *, stopping: bool) -> None:
        self.told: list[object] = []
        updates = SimpleNamespace(
            addBuild=answer((7, 1)),
            findBuilderId=answer(1),
            setBuildStateString=answer(),
            finishBuild=lambda _, results: self.told.append(results),
        )
        self.master = SimpleNamespace(
            data=SimpleNamespace(updates=updates),
            db=SimpleNamespace(builders=SimpleNamespace(updateBuilderInfo=answer())),
            mq=SimpleNamespace(
                startConsuming=answer(SimpleNamespace(stopConsuming=lambda: None)),
            ),
            botmaster=SimpleNamespace(
                remove_in_progress_buildrequest=lambda _: "somebody cancelled it",
                shuttingDown=stopping,
            ),
        )
        self.builder = SimpleNamespace(
            name="linux-x86_64",
            master=self.master,
            config_version=1,
            config=SimpleNamespace(env={}, do_build_if=lambda _: True),
            buildFinished=lambda *_: self.told.append("builder"),
        )
        self.agent = SimpleNamespace(
            worker=SimpleNamespace(
                workername="w1", workerid=1, info=None, resetQuarantine=lambda: None
            ),
            buildFinished=lambda: self.told.append("agent"),
        )

    def build(self) -> JobBuild:
        request = SimpleNamespace(
            id=3, mergeSourceStampsWith=lambda _: [], mergeReasons=lambda _: "plan"
        )
        build = JobBuild(
            [stands_in(BuildRequest, request)],
            stands_in(Builder, self.builder),
            AttemptHistory(shared=False),
        )
        build.setProperty(JobBuild.VIRTUAL_BUILDERNAME_PROP, "tiny/cell", "plan")
        return build


@pytest.mark.parametrize(
    ("stopping", "verdict", "end"),
    [
        (False, None, CANCELLED),
        (True, None, RETRY),  # only the master stops: the job resumes later
        (True, AttemptVerdict.ENDED, CANCELLED),
    ],
)
def test_a_build_that_is_cancelled_when_it_begins(
    stopping: bool, verdict: AttemptVerdict | None, end: int
) -> None:
    around = StandIns(stopping=stopping)
    build = around.build()
    if verdict is not None:
        build.setProperty(VERDICT, verdict.value, "run")
    build.startBuild(stands_in(AbstractWorkerForBuilder, around.agent))
    assert around.told == [end, "agent", "builder"]


def test_an_agent_that_is_lost_while_tries_are_read_disturbs_no_queue(tmp_path: Path) -> None:
    """Otherwise Buildbot ignores the builder's other jobs until the next event."""
    read: defer.Deferred[object] = defer.Deferred()
    pool = SimpleNamespace(do=lambda *_: read)
    master = SimpleNamespace(reactor=Clock(), db=SimpleNamespace(model=None, pool=pool))
    agent = SimpleNamespace(worker=SimpleNamespace(properties=Properties(machine="w1")))
    builder = SimpleNamespace(master=master, workers=[agent])
    policy = RetryPolicy(RetryLimits(), AttemptHistory(shared=False), Plans(tmp_path))
    found: list[object] = []
    policy(
        stands_in(Builder, builder),
        stands_in(AbstractWorkerForBuilder, agent),
        stands_in(BuildRequest, SimpleNamespace(id=3)),
    ).addBoth(found.append)
    agent.worker, builder.workers = None, []
    read.callback({})
    assert found == [True]  # the start of the build notices it


class StandInBuilder:
    """Stand-in for Buildbot's builder: starts everything."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def getAvailableWorkers(self) -> list[object]:  # noqa: N802 - Buildbot's
        return []

    def maybeStartBuild(self, _agent: object, requests: list[str]) -> bool:  # noqa: N802
        self.begun += requests
        return True


def test_a_job_whose_agent_is_lost_while_it_is_claimed_is_given_back() -> None:
    builder = StandInBuilder()
    JobBuildChooser(
        Dispatcher(machines=[], folder=".", interval=1, statuses=WorkerStatuses()),
        stands_in(Builder, builder),
        stands_in(BuildMaster, None),
    )
    given_back = builder.maybeStartBuild(SimpleNamespace(worker=None), ["one"])
    assert builder.begun == []
    assert getattr(given_back, "result", None) is False
    assert builder.maybeStartBuild(SimpleNamespace(worker="w1"), ["two"]) is True
    assert builder.begun == ["two"]
