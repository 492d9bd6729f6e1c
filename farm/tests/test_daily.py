"""Published packages are tried daily, and broken ones are found."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm
from farm.tests.tables import FAILURE
from tests.support.helpers import WORKS, make_project
from tests.support.served import directory_config
from tests.support.services import Nginx
from tests.support.smoke import make_wheel
from torchyard.host.process import capture
from torchyard_farm.settings.dates import format_moment

pytestmark = pytest.mark.integration

SMOKED = WORKS.replace("smoke = []", "") + '\n[smoke]\nlevel = "import"\n'


def torchyard(*words: object) -> None:
    capture([sys.executable, "-m", "torchyard", *map(str, words)], cwd=Path("/"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("days", "names"),
    [(2, ["tiny"]), (3, ["tiny", "alone"])],
)
def test_what_breaks_in_a_channel_is_found_and_told_since_when(
    tmp_path: Path, days: int, names: list[str]
) -> None:
    """`tiny` depends on `shared`, which is yanked on the second day."""
    channel, packages = tmp_path / "channel", tmp_path / "packages"
    packages.mkdir()
    make_wheel(packages, version="1.0+cpu", requires="shared>=2", dist="tiny")
    make_wheel(packages, version="1.0+cpu", dist="alone")
    make_wheel(packages, version="2.0", dist="shared")
    torchyard("publish", packages, "--to", channel)
    file = make_project(tmp_path / "project", SMOKED + f'[channel.nightly]\nurl = "{channel}"\n')
    with (
        Nginx(tmp_path / "nginx", directory_config(channel)) as nginx,
        TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",)) as farm,
    ):
        with (farm.master / "farm.toml").open("a", encoding="utf-8") as text:
            never = datetime.now(UTC) + timedelta(hours=12)  # what is due is said here
            text.write(f'[daily.published]\nat = "{never:%H:%M}"\nchannel = "nightly"\n')
            text.write(f'url = "{nginx.url}"\nselect = {json.dumps(names)}\n')
        farm.start_master()
        farm.start_workers()
        dues = [f"2026-11-{day}T06:00:00Z" for day in range(13, 13 + days)]
        for due in dues:
            if due == dues[1]:
                torchyard("channel", "yank", channel, "shared", "--reason", "broken on purpose")
            plan = farm.run("daily", "published", "--due", due).strip()
            farm.wait_done(plan)
        assert farm.run("daily", "published", "--due", dues[-1]) == ""  # it was done
        status = json.loads(farm.run("status", "--json"))
        (failing,) = status["failing"]
        assert failing["job"] == "smoke:tiny-1.0+cpu/any/cpu-any/any/wheel"
        failures = [one for one in farm.builds() if one["results"] == FAILURE]
        assert len(failures) == days - 1
        since = datetime.fromtimestamp(failures[0]["complete_at"], UTC)
        assert (failing["since"], failing["times"]) == (format_moment(since), days - 1)
        assert any("/cpu/tiny/" in one.path for one in nginx.asked())
        often = ", 2 times in a row" if days > 2 else ""
        assert f"since {since:%Y-%m-%d}{often} (published)" in farm.run("status")
