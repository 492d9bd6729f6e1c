"""Scheduled runs, from a commit to an installed package."""

import json
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from farm.tests.backdating import backdate
from farm.tests.farms import TrialFarm, wait_until
from farm.tests.git_projects import PUBLISHED, make_project
from tests.support.served import directory_config
from tests.support.services import Nginx
from torchyard.publish.channel.channel import Channel
from torchyard_farm.settings.dates import format_moment

pytestmark = pytest.mark.integration

CALENDAR = """
[worker.uploads]
platform = "linux-x86_64"
memory = "8 GB"
disk = "8 GB"
publish = true

[nightly.main]
at = "{at}"
subset = "nightly"

[daily.published]
at = "{at}"
channel = "nightly"
url = "{url}"
"""


def runs(farm: TrialFarm, name: str) -> list[str]:
    """Return when the recorded runs of a schedule were due."""
    start = f"calendar:{name}@"
    found = (one["external_idstring"] for one in farm.buildsets())
    return [one.removeprefix(start) for one in found if one.startswith(start)]


def last_run(farm: TrialFarm, name: str) -> dict[str, str | None]:
    told = json.loads(farm.run("status", "--json"))["runs"]
    (run,) = (one for one in told if one["name"] == name)
    assert isinstance(run, dict)
    return run


def make_up_for(farm: TrialFarm, name: str) -> str:
    """Start the master as if after a week, and wait for the next plan."""
    farm.stop("master")
    backdate(f"sqlite:///{farm.master}/state.sqlite", name)
    farm.start_master()
    wait_until(lambda: last_run(farm, name)["outcome"] not in (None, "running"), 240, farm.log)
    run = last_run(farm, name)
    assert run["outcome"] == "good", run
    assert run["told"] is not None
    farm.wait_done(run["told"])
    return run["told"]


@pytest.mark.slow
def test_a_missed_nightly_is_done_once_and_what_it_published_is_tried(tmp_path: Path) -> None:
    repository, file = make_project(tmp_path / "project", PUBLISHED)
    newest = repository.commit("the newest")
    channel = tmp_path / "project" / "channel"
    with ExitStack() as stack:
        nginx = stack.enter_context(Nginx(tmp_path / "nginx", directory_config(channel)))
        database = "sqlite:///state.sqlite"
        farm = stack.enter_context(TrialFarm(tmp_path / "farm", file, database, ("w1",)))
        at = datetime.now(UTC) - timedelta(minutes=2)
        with (farm.master / "farm.toml").open("a", encoding="utf-8") as text:
            text.write(CALENDAR.format(at=f"{at:%H:%M}", url=nginx.url))
        farm.start_master()
        farm.start_workers()
        farm.start_worker("uploads", "--publish")
        first = last_run(farm, "main")
        assert first["last"] is None
        assert (first["next"] or "") > format_moment(datetime.now(UTC))
        assert runs(farm, "main") == []  # these times are new: nothing was missed

        plan = make_up_for(farm, "main")
        assert plan.endswith("@main")
        version = f"1.0.dev{at:%Y%m%d}"
        head = Channel.at(str(channel)).head()
        (entry,) = Channel.at(str(channel)).state(head, "simple/demo").entries
        assert (entry.version, entry.commit) == (version, newest)

        trial = make_up_for(farm, "published")  # and the restarted master repeats nothing
        assert trial.endswith("@published")
        assert runs(farm, "main") == runs(farm, "published") == [f"{at:%Y-%m-%dT%H:%M}:00Z"]
        status = json.loads(farm.run("status", "--json"))
        assert status["failing"] == status["plans"] == []
        assert any(one.path.endswith(".whl") for one in nginx.asked())

        again = farm.run("nightly", "main", "--due", f"{at + timedelta(days=1):%Y-%m-%dT%H:%M}:00Z")
        assert again == ""  # the commit is the same
