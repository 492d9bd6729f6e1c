"""Plans on a master and three workers, under faults."""

import random
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from farm.tests.chaos import (
    WORKERS,
    busy_text,
    check_busy,
    check_once,
    harm_often,
)
from farm.tests.farms import LONG, TrialFarm, wait_until
from tests.helpers import WORKS, make_project

pytestmark = pytest.mark.integration

SLOW = WORKS.replace("cat {core}", "sleep 1; cat {core}").replace(
    'python = ["cp311", "cp312"]', 'python = ["cp310", "cp311", "cp312", "cp313"]'
)


def start(stack: ExitStack, folder: Path, text: str, database: str) -> TrialFarm:
    file = make_project(folder / "project", text)
    farm = TrialFarm(folder / "farm", file, database, WORKERS)
    stack.enter_context(farm)
    farm.start_master()
    farm.start_workers()
    wait_until(lambda: farm.connected() == set(WORKERS), 240, farm.log)
    return farm


def test_a_plan_is_built_by_several_workers(tmp_path: Path, database: str) -> None:
    with ExitStack() as stack:
        farm = start(stack, tmp_path, SLOW, database)
        broken = farm.master / "plans" / "broken.json"
        broken.parent.mkdir(exist_ok=True)
        broken.write_bytes(b"{}")  # it blocks nothing
        plan = farm.submit()
        farm.wait_done(plan)
        check_once(farm, plan, 17)
        builds = farm.builds()
        assert len({build["workerid"] for build in builds}) > 1
        assert {page["builderid"] for page in farm.pages()} == {one["builderid"] for one in builds}
        assert farm.submit() == ""  # all is there


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_machine_that_dies_and_an_agent_that_is_killed_lose_nothing(
    tmp_path: Path, database: str
) -> None:
    """The first one's job is restarted; the second one's continues, and is found again."""
    marks = tmp_path / "begun"
    wait = f"until test -e {tmp_path}/go; do sleep 0.5; done"
    line = f"echo begun >> {marks}; {wait}; mkdir -p {{out}}/lib"
    with ExitStack() as stack:
        text = WORKS.replace("mkdir -p {out}/lib", line).replace('"cp311", "cp312"', '"cp312"')
        farm = start(stack, tmp_path, text, database)
        plan = farm.submit()
        for runs, kill in ((1, farm.kill_machine), (2, farm.kill)):
            text = "begun\n" * runs
            wait_until(lambda: marks.exists() and marks.read_text("utf-8") == text, 240, farm.log)  # noqa: B023
            wait_until(lambda: farm.at_work() != "", 240, farm.log)
            name = farm.at_work()
            kill(name)
            farm.start_worker(name)
        (tmp_path / "go").touch()
        farm.wait_done(plan)
        check_once(farm, plan, 5)
        assert marks.read_text("utf-8") == text


@pytest.mark.slow
def test_a_master_that_is_killed_at_any_moment_loses_nothing(tmp_path: Path, database: str) -> None:
    """Also while it starts, which takes it about three seconds here."""
    with ExitStack() as stack:
        farm = start(stack, tmp_path, busy_text(tmp_path, 9), database)
        plan = farm.submit()
        harm_often(farm, tmp_path, 9, 20, farm.restart_master)
        farm.wait_for_master()
        farm.wait_done(plan)
        check_busy(farm, plan, tmp_path, 9)


@pytest.mark.slow
def test_a_master_that_is_stopped_at_any_moment_cancels_nothing(tmp_path: Path) -> None:
    """Also when a job is about to start, which Buildbot would cancel for good."""
    chance = random.Random(6)
    with ExitStack() as stack:
        farm = start(stack, tmp_path, WORKS, "sqlite:///state.sqlite")
        plan = farm.submit()
        for _ in range(4):
            time.sleep(chance.uniform(0.2, 4))
            farm.stop("master")
            farm.start_master()
        farm.wait_done(plan)
        check_once(farm, plan, 9)


@pytest.mark.slow
def test_what_buildbot_leaves_open_when_it_is_killed_is_closed(tmp_path: Path) -> None:
    """It completes a request and then its buildset: killed in between, it forgets the latter."""
    with ExitStack() as stack:
        farm = start(stack, tmp_path, WORKS, "sqlite:///state.sqlite")
        plan = farm.submit()
        wait_until(lambda: any(one["complete"] for one in farm.buildsets()), LONG, farm.log)
        farm.kill("master")
        with closing(sqlite3.connect(farm.master / "state.sqlite")) as database, database:
            database.execute("UPDATE buildsets SET complete = 0, results = -1, complete_at = NULL")
        farm.start_master()
        farm.wait_done(plan)
        check_once(farm, plan, 9)
