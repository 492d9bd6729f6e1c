"""What a master does by the clock."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm, wait_until
from farm.tests.sources import make_project
from torchyard_farm.dates import spell_moment

pytestmark = pytest.mark.integration


def backdate(farm: TrialFarm, days: int) -> None:
    """Let a master that does not run believe that it has known its calendar for some days."""
    then = spell_moment(datetime.now(UTC) - timedelta(days=days))
    with closing(sqlite3.connect(farm.master / "state.sqlite")) as database, database:
        changed = database.execute(
            "UPDATE object_state SET value_json = ? WHERE name LIKE 'main at %'",
            (json.dumps(then),),
        )
        assert changed.rowcount == 1


@pytest.mark.slow
def test_a_nightly_that_was_missed_for_a_week_is_done_once(tmp_path: Path) -> None:
    repository, file = make_project(tmp_path / "project")
    newest = repository.commit("the newest")
    with TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",)) as farm:
        due = datetime.now(UTC) - timedelta(minutes=2)
        with (farm.master / "farm.toml").open("a", encoding="utf-8") as text:
            text.write(f'[nightly.main]\nat = "{due:%H:%M}"\nsubset = "nightly"\n')
        farm.start_master()
        farm.start_workers()
        first = json.loads(farm.run("status", "--json"))["runs"]
        assert [(run["name"], run["last"]) for run in first] == [("main", None)]
        assert first[0]["next"] > spell_moment(datetime.now(UTC))
        assert farm.buildsets() == []  # these times are new: nothing was missed
        farm.stop("master")
        backdate(farm, 7)
        farm.start_master()
        wait_until(lambda: any(one["complete"] for one in farm.buildsets()), 60, farm.log)
        (run,) = json.loads(farm.run("status", "--json"))["runs"]
        assert run["outcome"] == "good", run
        plan = run["told"]
        assert plan.endswith("@main")
        assert f".dev{due:%Y%m%d}-" in plan
        farm.wait_done(plan, 120)
        # Killed and started again, it knows what it did.
        farm.kill("master")
        farm.start_master()
        runs = [one for one in farm.buildsets() if one["external_idstring"].startswith("calendar:")]
        assert len(runs) == 1
        assert newest in (farm.master / "plans" / "ended" / f"{plan}.json").read_text("utf-8")
