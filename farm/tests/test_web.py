"""What the web interface lets whom do."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm, wait_until
from farm.tests.visitors import Visitor
from tests.helpers import WORKS, make_yard
from torchyard_farm.settings.layout import secret_of
from torchyard_farm.settings.roles import ADMIN

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_only_the_administrator_can_try_a_failed_job_again(tmp_path: Path) -> None:
    text = WORKS.replace("mkdir -p {out}/lib", f"mkdir -p {{out}}/lib; test -e {tmp_path}/mended")
    file = make_yard(tmp_path / "project", text)
    with ExitStack() as stack:
        farm = stack.enter_context(
            TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",))
        )
        farm.start_master()
        farm.start_workers()
        plan = farm.submit()
        wait_until(lambda: any(one["complete"] for one in farm.buildsets()), 30, farm.log)
        (build,) = farm.builds()
        assert build["results"] == 2
        assert "failed  core:demo-1.0" in farm.run("status")
        (tmp_path / "mended").touch()
        path = f"builds/{build['buildid']}"
        anybody, liar, administrator = (stack.enter_context(Visitor(farm)) for _ in range(3))
        assert anybody.ask_for("rebuild", path) == 403
        assert anybody.ask_for("stop", path) == 403
        assert anybody.ask_for("cancel", f"buildrequests/{build['buildrequestid']}") == 403
        assert liar.log_in(ADMIN, "a guess").status == 401
        assert liar.ask_for("rebuild", path) == 403
        assert len(farm.buildsets()) == 1
        administrator.log_in(ADMIN, secret_of(farm.master, ADMIN))
        assert administrator.ask_for("rebuild", path) == 200
        farm.wait_done(plan, 60)  # the plan goes on behind it
