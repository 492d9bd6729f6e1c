"""A master deletes old jobs, and continues open plans."""

from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm, wait_until
from tests.support.helpers import WORKS, make_project

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_a_master_forgets_old_plans_and_finishes_open_ones(tmp_path: Path) -> None:
    file = make_project(tmp_path / "project", WORKS)
    with TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",)) as farm:
        settings = farm.master / "farm.toml"
        settings.write_text(f'keep = "0 s"\n{settings.read_text(encoding="utf-8")}', "utf-8")
        farm.start_master()
        farm.start_workers()
        over = farm.submit("bindings:*")
        farm.wait_done(over)
        is_open = farm.submit()
        wait_until(lambda: any(_of(farm, is_open)), 180, farm.log)
        farm.kill("master")  # it cleans up when it starts
        farm.start_master()
        wait_until(lambda: not any(_of(farm, over)), 180, farm.log)
        farm.wait_done(is_open)


def _of(farm: TrialFarm, plan: str) -> list[str]:
    names = (one["external_idstring"] for one in farm.buildsets())
    return [name for name in names if name.startswith(f"{plan}/")]
