"""Jobs on Buildbot's own pages."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm, wait_until
from tests.helpers import CORE, WORKS, make_project

pytestmark = pytest.mark.integration

_LONG = 300
_BROKEN = "echo /x/a.c:1:2: fatal error: nothing.h: No such file or directory; exit 1"


def test_a_job_tells_what_it_did(tmp_path: Path) -> None:
    slow = f"echo unit 1; until test -e {tmp_path}/go; do sleep 0.1; done; echo unit 30"
    text = WORKS.replace("mkdir -p {out}/lib", f"{slow}; mkdir -p {{out}}/lib", 1).replace(
        "cat {core}", f"{_BROKEN}; cat {{core}}"
    )
    file = make_project(tmp_path / "project", text)
    with TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",)) as farm:
        farm.start_master()
        farm.start_workers()
        plan = farm.submit()
        wait_until(lambda: "unit 1\n" in read_logs(farm, 1).get("log", ""), _LONG, farm.log)
        (tmp_path / "go").touch()
        wait_until(lambda: sum(one["complete"] for one in farm.buildsets()) == 3, _LONG, farm.log)
        first, second, _ = farm.builds()

        told = json.loads(farm.text(f"api/v2/builds/{first['buildid']}"))["builds"][0]
        assert told["state_string"].startswith("build successful core: built in ")
        assert told["state_string"].endswith(", 2 files, 29 B")
        logs = read_logs(farm, first["buildid"])
        assert set(logs) == {"stdio", "log"}
        assert f"step 1/2  {CORE}: compile\n" in logs["stdio"]
        assert '{"event"' not in logs["stdio"]
        assert "unit 1\n" in logs["log"]
        assert "unit 30\n" in logs["log"]
        assert sha256(b"some code\nmore code\n").hexdigest() in logs["stdio"]
        assert "\nlist " in logs["stdio"]

        (told,) = json.loads(farm.text(f"api/v2/builds/{second['buildid']}"))["builds"]
        assert told["state_string"].startswith("failed bindings: A header is missing: ")
        step = json.loads(farm.text(f"api/v2/builds/{second['buildid']}/steps/run"))["steps"][0]
        assert "fatal error: nothing.h" in step["state_string"]
        (link,) = step["urls"]
        assert link["url"].endswith(f"/plugins/plans/{plan}")
        assert "error: A header is missing" in read_logs(farm, second["buildid"])["stdio"]

        page = farm.text(f"plugins/plans/{plan}")
        assert "A header is missing" in page
        assert "2 failures" in page
        assert "on w1, since <time" in page
        assert plan in farm.text("plugins/plans/")
        for name in ("..%2F..%2Ffarm", "nothing", "..%2Fended"):
            with pytest.raises(OSError, match="404"):
                farm.text(f"plugins/plans/{name}")


def read_logs(farm: TrialFarm, build: int) -> dict[str, str]:
    """Return the logs of the job's step, by name; none if it has not started."""
    told = farm.read(f"builds/{build}/steps/run/logs")
    found = json.loads(told)["logs"] if told else ()
    return {one["name"]: farm.text(f"api/v2/logs/{one['logid']}/raw") for one in found}
