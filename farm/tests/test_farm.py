"""Plans on a master and three workers, on both kinds of database; `test_outages` is quicker."""

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
from tests.support.helpers import WORKS, make_project

pytestmark = [pytest.mark.integration, pytest.mark.slow]

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


def test_a_master_that_is_killed_at_any_moment_loses_nothing(tmp_path: Path, database: str) -> None:
    """Also while it starts, which takes it about three seconds here."""
    with ExitStack() as stack:
        farm = start(stack, tmp_path, busy_text(tmp_path, 9), database)
        plan = farm.submit()
        harm_often(farm, tmp_path, 9, [farm.restart_master] * 20)
        farm.wait_for_master()
        farm.wait_done(plan)
        check_busy(farm, plan, tmp_path, 9)


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
