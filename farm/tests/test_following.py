"""The changes of a plan, from polls."""

from collections.abc import Mapping, Sequence

import pytest

from farm.tests.factories import made_plan, real_plan
from torchyard.model.recipe import Stage
from torchyard_farm.client.following import (
    JobEnded,
    JobStarted,
    PlanFollower,
    cached_results,
    error_text,
)
from torchyard_farm.client.web_api import RunningBuild, SubmittedJob
from torchyard_farm.scheduling.plans import farm_plan

CHAIN = {0: [], 1: [0], 2: [0]}


class Watched:
    """A plan, and its changes as numbers."""

    def __init__(self, after: Mapping[int, Sequence[int]]) -> None:
        self.course = PlanFollower(made_plan(after))
        self._sets = 0

    def ended(self, job: int, results: int = 0, at: int = 100) -> SubmittedJob:
        self._sets += 1
        return SubmittedJob(
            bsid=self._sets,
            external_idstring=f"plan/{job}",
            complete=True,
            complete_at=at,
            results=results,
        )

    def look(
        self, going: Mapping[int, RunningBuild], *ended: SubmittedJob
    ) -> list[JobStarted | int]:
        moves = self.course.take(going, ended)
        return [move.job if isinstance(move, JobEnded) else move for move in moves]

    def is_over(self) -> bool:
        return self.course.is_over


def test_beginnings_and_ends_are_told_once() -> None:
    seen = Watched(CHAIN)
    running = {0: RunningBuild(7, "w1")}
    assert seen.look(running) == [JobStarted(0, "w1", 1, "")]
    assert seen.look(running) == []
    end = seen.ended(0)
    assert seen.look(running, end) == [0]  # it ended between the two requests
    assert seen.look({}, end) == []
    assert seen.course.left == [1, 2]
    assert not seen.is_over()
    assert seen.look({}, end, seen.ended(1), seen.ended(2)) == [1, 2]
    assert seen.is_over()
    assert seen.course.left == []


def test_a_job_whose_worker_is_not_known_yet_is_told_later() -> None:
    seen = Watched(CHAIN)
    assert seen.look({0: RunningBuild(7, "")}) == []
    assert not seen.is_over()
    assert seen.look({0: RunningBuild(7, "w1")}) == [JobStarted(0, "w1", 1, "")]


def test_a_job_that_goes_elsewhere_is_tried_again() -> None:
    seen = Watched(CHAIN)
    seen.look({0: RunningBuild(7, "w1")})
    assert seen.look({}) == []  # its end may not have been recorded yet
    assert seen.look({0: RunningBuild(9, "w2", 2)}) == [JobStarted(0, "w2", 2, "w1")]
    assert seen.look({0: RunningBuild(10, "w2", 3)}) == [JobStarted(0, "w2", 3, "w2")]
    assert seen.look({0: RunningBuild(11, "w1", 3)}) == [JobStarted(0, "w1", 3, "w2")]


def test_a_job_that_goes_on_after_a_restart_of_the_master_is_no_news() -> None:
    seen = Watched(CHAIN)
    seen.look({0: RunningBuild(7, "w1")})
    seen.look({})
    assert seen.look({0: RunningBuild(9, "")}) == []
    assert seen.look({0: RunningBuild(9, "w1")}) == []
    assert seen.look({}, seen.ended(0, results=2)) == [0]
    assert seen.look({0: RunningBuild(10, "w1")}) == [JobStarted(0, "w1", 1, "")]  # it is rebuilt


def test_nothing_goes_on_behind_a_failure_until_somebody_helps() -> None:
    seen = Watched({**CHAIN, 3: []})
    seen.look({}, seen.ended(0, results=2))
    assert not seen.is_over()  # the last job has no predecessor
    seen.look({}, seen.ended(3))
    assert seen.is_over()
    assert seen.course.left == [1, 2]
    assert seen.look({0: RunningBuild(9, "w1")}) == [JobStarted(0, "w1", 1, "")]
    assert not seen.is_over()
    assert seen.look({}, seen.ended(0)) == [0]
    assert seen.course.left == [1, 2]
    assert not seen.is_over()


def test_only_late_ends_are_asked_for() -> None:
    seen = Watched(CHAIN)
    running = {2: RunningBuild(7, "w1")}
    assert seen.course.since(running, is_open=True) == 0
    seen.look(running, seen.ended(0, at=1000), seen.ended(1, at=900))
    assert seen.course.since(running, is_open=True) == 970


@pytest.mark.parametrize("is_open", [True, False])
def test_an_end_that_was_written_down_late_is_seen_before_anybody_gives_up(is_open: bool) -> None:
    """As while the database was unavailable; the plan is over then, or seems to wait."""
    seen = Watched({0: [], 1: []})
    late = seen.ended(0, at=100)
    seen.look({}, seen.ended(1, at=1000))
    assert seen.course.left == [0]
    assert seen.course.since({}, is_open=is_open) <= 100
    assert seen.course.since({1: RunningBuild(7, "w1")}, is_open=False) <= 100
    assert seen.look({}, late) == [0]


def test_what_there_were_results_of_is_known() -> None:
    plan = real_plan()
    packages = [job.fingerprint for job in plan.jobs if job.stage is Stage.PACKAGE]
    proofs = [job.fingerprint for job in plan.jobs if job.stage in (Stage.CHECK, Stage.SMOKE)]
    known = {packages[0], proofs[0], plan.jobs[0].fingerprint}
    farmed = farm_plan(plan, known, name="plan", store="file:///store")
    assert cached_results(farmed) == (2, packages[:1])


def test_errors_are_what_a_job_said_at_last() -> None:
    log = [
        "htorchyard run --detach",
        "ostarted  core:x",
        "oerror: this is from a compiler",
        "ofailed   core:x: it is wrong",
        "esome library complains",
        "eerror: core:x: it is wrong",
        "ehint: mend it",
        "hprogram finished with exit code 9",
    ]
    assert error_text(log) == "error: core:x: it is wrong\nhint: mend it"
    assert error_text(["oall is well"]) == ""


def test_no_job_rules_the_terminal_of_who_follows_it() -> None:
    assert error_text(["eerror: \x1b[2J\tgone"]) == r"error: \x1b[2J     gone"
