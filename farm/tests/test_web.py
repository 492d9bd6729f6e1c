"""Roles in the web interface, and complete responses."""

import json
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest

from farm.tests.farms import LONG, TrialFarm, wait_until
from farm.tests.web_clients import Visitor
from tests.support.helpers import WORKS, make_project
from tests.support.services import LOOPBACK
from torchyard_farm.settings.layout import read_secret
from torchyard_farm.settings.roles import ADMIN

pytestmark = pytest.mark.integration

SERVES = """
import json, sys
from buildbot.www.rest import V2RootResource
from buildbot.www.service import BuildbotSite
from torchyard_farm.master.buildbot_fixes.web_responses import harden_web_server
from twisted.internet import reactor, threads
from twisted.web import resource, server

harden_web_server(is_behind_tls=False)
sys.setswitchinterval(1e-6)  # threads take turns as often as they can

class Long(resource.Resource):
    isLeaf = True

    def render_GET(self, request):
        encoder, data = json.JSONEncoder(indent=2), {"numbers": list(range(4000))}
        written = threads.deferToThread(V2RootResource._write_json_data, request, encoder, data)
        written.addCallback(lambda _: request.finish())
        return server.NOT_DONE_YET

site = server.Site(Long(), requestFactory=BuildbotSite.requestFactory)
print(reactor.listenTCP(0, site, interface="127.0.0.1").getHost().port, flush=True)
reactor.run()
"""


def test_a_long_answer_is_whole() -> None:
    """Buildbot writes responses in a thread: every tenth would be incomplete here."""
    argv = [sys.executable, "-c", SERVES]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as serves:
        try:
            assert serves.stdout is not None
            url = f"http://{LOOPBACK}:{int(serves.stdout.readline())}/"
            for _ in range(50):
                with urllib.request.urlopen(url, timeout=300) as answer:
                    assert json.load(answer) == {"numbers": list(range(4000))}
        finally:
            serves.kill()


@pytest.mark.slow
def test_only_the_administrator_can_try_a_failed_job_again(tmp_path: Path) -> None:
    text = WORKS.replace("mkdir -p {out}/lib", f"mkdir -p {{out}}/lib; test -e {tmp_path}/mended")
    file = make_project(tmp_path / "project", text)
    with ExitStack() as stack:
        farm = stack.enter_context(
            TrialFarm(tmp_path / "farm", file, "sqlite:///state.sqlite", ("w1",))
        )
        farm.start_master()
        farm.start_workers()
        plan = farm.submit()
        wait_until(lambda: any(one["complete"] for one in farm.buildsets()), LONG, farm.log)
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
        administrator.log_in(ADMIN, read_secret(farm.master, ADMIN))
        assert administrator.ask_for("rebuild", path) == 200
        farm.wait_done(plan)  # the plan continues after it
