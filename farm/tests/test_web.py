"""What the web interface lets whom do."""

import base64
import json
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from farm.tests.farms import TrialFarm, wait_until
from tests.helpers import WORKS, make_yard
from tests.services import LOOPBACK
from torchyard_farm.layout import ADMIN, secret_of

pytestmark = pytest.mark.integration


class Visitor:
    """Somebody with a browser."""

    def __init__(self, farm: TrialFarm) -> None:
        self._url = f"http://{LOOPBACK}:{farm.web}"
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        self._browser = urllib.request.build_opener(cookies)

    def log_in(self, user: str, password: str) -> None:
        known = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {known}"}
        self._browser.open(urllib.request.Request(f"{self._url}/auth/login", headers=headers))  # noqa: S310

    def ask_for(self, verb: str, path: str) -> int:
        """Ask the master to do something, and return its answer's status."""
        body = json.dumps({"jsonrpc": "2.0", "method": verb, "id": 1, "params": {}}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}/api/v2/{path}", body, headers)  # noqa: S310
        try:
            with self._browser.open(request) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


@pytest.mark.slow
def test_only_the_administrator_can_try_a_failed_job_again(tmp_path: Path) -> None:
    text = WORKS.replace("mkdir -p {out}/lib", f"mkdir -p {{out}}/lib; test -e {tmp_path}/mended")
    file = make_yard(tmp_path / "project", text)
    with TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",)) as farm:
        farm.start_master()
        farm.start_workers()
        plan = farm.submit()
        wait_until(lambda: any(one["complete"] for one in farm.buildsets()), 30, farm.log)
        (build,) = farm.builds()
        assert build["results"] == 2
        assert "failed  core:demo-1.0" in farm.run("status")
        (tmp_path / "mended").touch()
        path = f"builds/{build['buildid']}"
        anybody, liar, administrator = Visitor(farm), Visitor(farm), Visitor(farm)
        assert anybody.ask_for("rebuild", path) == 403
        assert anybody.ask_for("stop", path) == 403
        assert anybody.ask_for("cancel", f"buildrequests/{build['buildrequestid']}") == 403
        with pytest.raises(urllib.error.HTTPError, match="401"):
            liar.log_in(ADMIN, "a guess")
        assert liar.ask_for("rebuild", path) == 403
        assert len(farm.buildsets()) == 1
        administrator.log_in(ADMIN, secret_of(farm.master, ADMIN))
        assert administrator.ask_for("rebuild", path) == 200
        farm.wait_done(plan, 60)  # the plan goes on behind it
