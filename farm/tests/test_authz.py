"""Without a role no request to the web server changes anything."""

import ast
import base64
import inspect
import json
import sqlite3
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib import import_module

import pytest
from buildbot.data.base import Endpoint, ResourceType
from buildbot.data.connector import DataConnector
from buildbot.plugins.db import get_plugins
from buildbot.www.ws import WsProtocol

from farm.tests.farms import TrialFarm, wait_until
from farm.tests.web_clients import JSON, Visitor, whisper
from tests.support.helpers import WORKS, make_project
from torchyard_farm.settings.layout import read_secret
from torchyard_farm.settings.roles import ADMIN

pytestmark = [
    pytest.mark.integration,
    # Buildbot imports all its modules.
    pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning"),
]

GUESTS = """
[user.guest]
roles = []
[user.starter]
roles = ["force"]
[user.stopper]
roles = ["stop"]
"""
PARAMS = {"priority": 99, "enabled": False, "reason": "why not", "builderid": 1}
FIELDS = {
    "name": "w1",
    "buildername": "linux-x86_64",
    "schedulername": "plans",
    "step_name": "run",
    "log_slug": "stdio",
}


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrialFarm]:
    """A farm with a job that runs for as long as the tests do."""
    folder = tmp_path_factory.mktemp("locked")
    file = make_project(folder / "project", WORKS.replace("mkdir -p", "sleep 3600; mkdir -p", 1))
    with TrialFarm(folder / "farm", file, "sqlite:///state.sqlite", ("w1",), tables=GUESTS) as farm:
        farm.start_master()
        farm.start_workers()
        farm.submit()
        try:
            log = "builds/1/steps/run/logs/stdio/raw"
            wait_until(lambda: bool(farm.builds()), 240, farm.log)
            wait_until(lambda: "step 1/" in farm.read(log), 240, farm.log)
            wait_until(lambda: "step 1/" in farm.read("builds/1/steps"), 240, farm.log)
            wait_until(lambda: is_quiet(farm), 240, farm.log)
            yield farm
        finally:
            with Visitor(farm) as admin:
                admin.log_in(ADMIN, read_secret(farm.master, ADMIN))
                admin.ask_for("stop", "builds/1")
                wait_until(lambda: all(b["complete"] for b in farm.builds()), 240, farm.log)


def endpoints() -> Iterator[type[Endpoint]]:
    for name in DataConnector.submodules:
        for _, kind in inspect.getmembers(import_module(name), inspect.isclass):
            if issubclass(kind, ResourceType):
                yield from getattr(kind, "endpoints", ())


def verbs_of(endpoint: type[Endpoint]) -> set[str]:
    """Return the actions of an endpoint: its methods, and strings compared with `action`."""
    found = {name.removeprefix("action").lower() for name in dir(endpoint) if name[:6] == "action"}
    if endpoint.control is not Endpoint.control:
        source = textwrap.dedent(inspect.getsource(endpoint.control))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Compare) and ast.unparse(node.left) == "action":
                words = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
                found |= {word for word in words if isinstance(word, str)}
    return found


def paths_of(endpoint: type[Endpoint]) -> Iterator[str]:
    for pattern in endpoint.pathPatterns:
        parts = (part.partition(":") for part in pattern.strip("/").split("/"))
        yield "/".join(FIELDS.get(field, "1") if colon else word for word, colon, field in parts)


def state_of(farm: TrialFarm) -> list[str]:
    """Return the database's contents, except the master's heartbeat and the job's log."""
    own = tuple(f'INSERT INTO "{name}"' for name in ("masters", "logs", "logchunks"))
    with closing(sqlite3.connect(farm.master / "state.sqlite")) as database:
        return [line for line in database.iterdump() if not line.startswith(own)]


def is_quiet(farm: TrialFarm) -> bool:
    before = state_of(farm)
    time.sleep(3)
    return state_of(farm) == before


@pytest.fixture
def unchanged(farm: TrialFarm) -> Iterator[None]:
    before = state_of(farm)
    yield
    assert state_of(farm) == before
    assert [build["complete"] for build in farm.builds()] == [False]


def test_what_can_be_asked_for_is_what_these_tests_ask_for() -> None:
    known = {endpoint.__name__: verbs_of(endpoint) for endpoint in endpoints()}
    assert {name: verbs for name, verbs in known.items() if verbs} == {
        "BuildEndpoint": {"rebuild", "stop"},
        "BuildRequestEndpoint": {"cancel", "set_priority"},
        "WorkerEndpoint": {"kill", "pause", "stop", "unpause"},
        "SchedulerEndpoint": {"enable"},
        "ForceSchedulerEndpoint": {"force"},
    }
    assert {name for name in dir(WsProtocol) if name.startswith("cmd_")} == {
        "cmd_ping",
        "cmd_startConsuming",
        "cmd_stopConsuming",
    }


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "who",
    ["nobody", *(pytest.param(who, marks=pytest.mark.slow) for who in ("guest", "liar", "forger"))],
)
def test_every_verb_of_every_path_is_forbidden(farm: TrialFarm, who: str) -> None:
    with Visitor(farm) as visitor:
        if who == "guest":
            assert visitor.log_in(who, read_secret(farm.master, who)).status == 302
        elif who == "liar":
            assert visitor.log_in(ADMIN, "a guess").status == 401
        elif who == "forger":
            visitor.cookie = f"TWISTED_SESSION={unsigned({'username': ADMIN})}"
        count = 0
        for endpoint in endpoints():
            verbs = verbs_of(endpoint)
            tried = {*verbs, *map(str.upper, verbs), *map(str.title, verbs), "rebuild", ""}
            for path in paths_of(endpoint):
                for verb in tried:
                    assert visitor.ask_for(verb, path, PARAMS) == 403, (verb, path)
                    count += 1
                assert visitor.ask_for("get", path, PARAMS) in (200, 403, 404, 500, 501)
        assert count > 200


def unsigned(user: Mapping[str, str]) -> str:
    """Return a session without a signature."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return ".".join((part({"alg": "none"}), part({"user_info": user, "exp": 1 << 33}), ""))


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged")
def test_nothing_else_of_the_server_changes_anything(farm: TrialFarm) -> None:
    hooks = ("", *(f"/{name}" for name in get_plugins("webhooks").names))
    body = json.dumps({"ref": "refs/heads/main", "commits": [{"id": "1", "author": "x"}]})
    with Visitor(farm) as visitor:
        for hook in hooks:
            for method in ("GET", "POST"):
                answer = visitor.send(method, f"/change_hook{hook}", body, {"Content-Type": JSON})
                assert answer.status == 400, hook
        for method in ("PUT", "DELETE", "PATCH"):
            for path in ("builds/1", "workers/1", "schedulers/1"):
                assert visitor.send(method, f"/api/v2/{path}", body).status == 400
        for path in (
            "/",
            "/auth",
            "/auth/login",
            "/avatar",
            "/config",
            "/graphql",
            "/plugins/plans/x",
        ):
            assert visitor.send("POST", path, body).status in (401, 404, 405), path
        assert visitor.send("GET", "/plugins/plans/..%2Fanother").status == 404
        assert not farm.has_said("there is no such plan"), "anybody could fill it"
        for path in ("/sse/add/1/builds", "/sse/remove/1/builds"):
            assert visitor.send("POST", path, body).status == 400
        assert visitor.send("GET", "/auth/logout").status == 302
    told = whisper(
        farm,
        [
            {"cmd": "startConsuming", "path": "builds/*/*", "_id": 1},
            {"cmd": "stop", "path": "builds/1", "_id": 2},
            {"cmd": "control", "path": "builds/1", "_id": 3},
            {"cmd": "ping", "_id": 4},
        ],
    )
    assert [json.loads(text)["code"] for text in told] == [200, 404, 404, 200]


@pytest.mark.slow
@pytest.mark.usefixtures("unchanged")
def test_another_site_can_not_use_the_administrators_browser(farm: TrialFarm) -> None:
    with Visitor(farm) as admin:
        answer = admin.log_in(ADMIN, read_secret(farm.master, ADMIN))
        cookie = answer.headers["set-cookie"].lower()
        assert "samesite=lax" in cookie
        assert "httponly" in cookie
        assert answer.headers["x-frame-options"] == "SAMEORIGIN"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
        theirs = {"Origin": "https://example.org"}
        assert admin.ask_for("stop", "builds/1", headers=theirs) == 400
        asked = {**theirs, "Access-Control-Request-Method": "POST"}
        assert admin.send("OPTIONS", "/api/v2/builds/1", headers=asked).status == 400
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            assert admin.ask_for("stop", "builds/1", headers={"Content-Type": kind}) == 400


@pytest.mark.slow
def test_a_role_allows_what_it_says_and_no_more(farm: TrialFarm) -> None:
    """This also shows that the requests that are refused above are well-formed."""
    with Visitor(farm) as starter, Visitor(farm) as stopper:
        starter.log_in("starter", read_secret(farm.master, "starter"))
        stopper.log_in("stopper", read_secret(farm.master, "stopper"))
        assert stopper.ask_for("pause", "workers/1", {"reason": "tired"}) == 200
        wait_until(
            lambda: '"paused":true' in farm.read("workers/1").replace(" ", ""), 120, farm.log
        )
        assert starter.ask_for("unpause", "workers/w1", {"reason": "no"}) == 403
        assert stopper.ask_for("unpause", "workers/w1", {"reason": "yes"}) == 200
        for path in ("builds/1", "builders/linux-x86_64/builds/1"):
            assert starter.ask_for("stop", path) == 403
        assert [build["complete"] for build in farm.builds()] == [False]
        assert stopper.ask_for("rebuild", "builds/1") == 403
        assert starter.ask_for("rebuild", "builds/1", headers={"Origin": starter.origin}) == 200
        (_, again) = farm.buildsets()
        assert starter.ask_for("cancel", "buildrequests/2") == 403
        assert stopper.ask_for("cancel", "buildrequests/2") == 200
        wait_until(lambda: farm.buildsets()[-1]["complete"], 120, farm.log)
        assert again["external_idstring"] == farm.buildsets()[0]["external_idstring"]
