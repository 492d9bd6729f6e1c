"""Everyday work of a farm. All tests share one farm, each with a project of its own."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import tarfile
import urllib.request
from collections import Counter
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from farm.tests.farms import LONG, Build, Buildset, TrialFarm, wait_until
from farm.tests.tables import FAILURE, RETRY
from farm.tests.test_credentials import ONE_PYTHON, UPLOADS
from farm.tests.test_examples import EXAMPLES
from farm.tests.web_clients import Visitor
from tests.support.helpers import CORE, WORKS, make_project
from tests.support.publishing import make_publishing_project, torchyard
from tests.support.roots import make_small_root
from tests.support.schemas import validate
from tests.support.services import LOOPBACK, Nginx, reserved_port
from torchyard.host.system_view import sandbox_fault
from torchyard.model.event import AnyEvent, Began, Ended, Finished, decode_event
from torchyard.store.store import Store
from torchyard.store.trees import read_result_log
from torchyard.store.verify import remove_result
from torchyard_farm.settings.layout import read_secret

pytestmark = pytest.mark.integration

FAST = """
[worker.fast]
platform = "linux-x86_64"
memory = "8 GB"
disk = "8 GB"
capabilities = ["fast"]
"""
STRICT = FAST.replace("fast", "strict")
ROOTED = FAST.replace("fast", "rooted")
USERS = """
[user.starter]
roles = ["force", "stop"]
[user.publisher]
roles = ["publish"]
"""
NAME = "farm.example.org"
_BROKEN = "echo /x/a.c:1:2: fatal error: nothing.h: No such file or directory; exit 1"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrialFarm]:
    """A farm with two workers; tests start the workers `fast`, `uploads`, `strict` and `rooted`."""
    folder = tmp_path_factory.mktemp("shared")
    tables = FAST + STRICT + ROOTED + UPLOADS + USERS
    file = make_project(folder / "project")
    database = "sqlite:///state.sqlite"
    with TrialFarm(folder / "farm", file, database, ("w1", "w2"), tables=tables) as farm:
        farm.start_master()
        farm.start_workers()
        yield farm


class Work(NamedTuple):
    """The part of a shared farm's work that belongs to one test."""

    farm: TrialFarm
    before: int
    """Number of builds before the test."""

    def submit(self, file: Path, *select: str) -> str:
        return self.farm.submit(*select, "-f", str(file))

    def builds(self) -> list[Build]:
        return self.farm.builds()[self.before :]

    def buildsets(self, plan: str) -> list[Buildset]:
        return [
            one for one in self.farm.buildsets() if one["external_idstring"].startswith(f"{plan}/")
        ]


@pytest.fixture
def work(shared: TrialFarm) -> Work:
    return Work(shared, len(shared.builds()))


def events_of(text: str) -> list[AnyEvent]:
    return [decode_event(line.encode()) for line in text.splitlines()]


@pytest.mark.slow
def test_a_build_through_a_farm_is_told_as_one_here(work: Work, tmp_path: Path) -> None:
    words = ("build", "package:*", "-f", make_project(tmp_path / "project"))
    through = ("--engine", "buildbot", "--farm", work.farm.master)
    here = torchyard(*words, "--store", tmp_path / "own", "--json")
    there = torchyard(*words, *through, "--json")
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    ours, theirs = events_of(here.stdout), events_of(there.stdout)
    ends = [
        {
            (event.job, event.fingerprint, event.outcome, event.size, event.digest)
            for event in events
            if isinstance(event, Ended) and not event.job.startswith("source:")
        }
        for events in (ours, theirs)
    ]
    assert len(ends[0]) == 5
    assert ends[0] == ends[1]
    began, *_, finished = theirs
    assert isinstance(began, Began)
    assert (began.jobs, began.needed, began.cached) == (6, 5, 0)  # the source was brought
    assert isinstance(finished, Finished)
    assert (finished.built, finished.failed, finished.skipped) == (5, 0, 0)
    again = torchyard(*words, *through)
    assert again.returncode == 0
    assert again.stdout.count("cached") == 2
    validate(json.loads(work.farm.run("status", "--json")), "farm-status")


@pytest.mark.slow
def test_a_job_tells_what_it_did(work: Work, tmp_path: Path) -> None:
    slow = f"echo unit 1; until test -e {tmp_path}/go; do sleep 0.1; done; echo unit 30"
    text = WORKS.replace("mkdir -p {out}/lib", f"{slow}; mkdir -p {{out}}/lib", 1).replace(
        "cat {core}", f"{_BROKEN}; cat {{core}}"
    )
    file = make_project(tmp_path / "project", text)
    farm, plan = work.farm, work.submit(file)
    wait_until(lambda: bool(work.builds()), LONG, farm.log)
    core = work.builds()[0]["buildid"]
    wait_until(lambda: "unit 1\n" in read_logs(farm, core).get("log", ""), LONG, farm.log)
    (tmp_path / "go").touch()
    wait_until(lambda: sum(one["complete"] for one in work.buildsets(plan)) == 3, LONG, farm.log)
    first, second, _ = work.builds()

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
    assert re.search("on w[12], since <time", page)
    assert plan in farm.text("plugins/plans/")
    for name in ("..%2F..%2Ffarm", "nothing", "..%2Fended"):
        with pytest.raises(OSError, match="404"):
            farm.text(f"plugins/plans/{name}")


def read_logs(farm: TrialFarm, build: int) -> dict[str, str]:
    """Return the logs of the job's step, by name; none if it has not started."""
    told = farm.read(f"builds/{build}/steps/run/logs")
    found = json.loads(told)["logs"] if told else ()
    return {one["name"]: farm.text(f"api/v2/logs/{one['logid']}/raw") for one in found}


def make_certificate(folder: Path) -> Path:
    """Create a self-signed certificate for two names, and its key."""
    path = folder / "farm.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}"]
    argv += ["-addext", f"subjectAltName=DNS:{NAME},IP:{LOOPBACK}"]
    argv += ["-keyout", str(folder / "farm.key"), "-out", str(path)]
    subprocess.run(argv, check=True, capture_output=True)
    return path


def test_nginx_serves_the_web_interface_over_tls(shared: TrialFarm, tmp_path: Path) -> None:
    if shutil.which("nginx", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("there is no nginx: apt-get install nginx-light")
    text = (EXAMPLES / "nginx.conf").read_text(encoding="utf-8")
    known = ssl.create_default_context(cafile=make_certificate(tmp_path))
    with reserved_port() as port:
        for old, new in (
            ("/etc/ssl/farm/", f"{tmp_path}/"),
            ("server master:8010;", f"server {LOOPBACK}:{shared.web};"),
            ("listen 443 ssl;", f"listen {LOOPBACK}:{port} ssl;"),
        ):
            assert old in text
            text = text.replace(old, new)
        with Nginx(tmp_path / "nginx", text) as nginx:
            for path, what in (("", b"<html"), ("api/v2/masters", b'"masters"')):
                url = f"https://{LOOPBACK}:{port}/{path}"
                with urllib.request.urlopen(url, timeout=300, context=known) as answer:
                    assert what in answer.read()
            with socket.create_connection((LOOPBACK, nginx.port), timeout=300) as plain:
                plain.sendall(f"GET /x HTTP/1.0\r\nHost: {NAME}\r\n\r\n".encode())
                assert f"Location: https://{NAME}/x".encode() in plain.recv(4096)
            assert b"101 Switching Protocols" in upgrade(known, port)


def upgrade(known: ssl.SSLContext, port: int) -> bytes:
    """Open a websocket, as the web interface does, and return the answer."""
    lines = ["GET /ws HTTP/1.1", f"Host: {LOOPBACK}:{port}", "Upgrade: websocket"]
    lines += ["Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    lines += ["Sec-WebSocket-Version: 13", f"Origin: https://{LOOPBACK}:{port}", "", ""]
    with (
        socket.create_connection((LOOPBACK, port), timeout=300) as raw,
        known.wrap_socket(raw, server_hostname=LOOPBACK) as secure,
    ):
        secure.sendall("\r\n".join(lines).encode())
        return secure.recv(4096)


@pytest.mark.slow
def test_what_is_gone_is_made_again_and_its_users_wait_for_it(work: Work, tmp_path: Path) -> None:
    """The core is deleted before the machine for its bindings connects."""
    text = (
        WORKS.replace('"cp311", "cp312"', '"cp312"').replace(
            "mkdir -p {out}", f"echo begun >> {tmp_path}/begun; mkdir -p {{out}}"
        )
        + '\n[requirements.bindings]\ncapabilities = ["fast"]\n'
    )
    file = make_project(tmp_path / "project", text)
    farm, plan = work.farm, work.submit(file, "bindings:*")
    wait_until(lambda: any(one["complete"] for one in work.buildsets(plan)), LONG, farm.log)
    store = Store.at(str(file.parent / ".torchyard/store"))
    (core,) = (one for one in store.results() if one.id == CORE)
    remove_result(store, core)
    farm.start_worker("fast")
    farm.wait_done(plan)
    sent = Counter(one["external_idstring"] for one in work.buildsets(plan))
    assert sent == {f"{plan}/0": 2, f"{plan}/1": 1}
    assert [one["results"] for one in work.builds()] == [0, RETRY, 0, 0]
    assert (tmp_path / "begun").read_text(encoding="utf-8") == "begun\n" * 2
    assert len(list(store.fingerprints())) == 3


@pytest.mark.slow
def test_a_worker_that_was_not_started_to_publish_refuses_to(work: Work, tmp_path: Path) -> None:
    """Even if farm.toml allows it: the worker decides.

    And a rebuild needs the role for that.
    """
    file = make_publishing_project(tmp_path / "project", ONE_PYTHON)
    farm = work.farm
    farm.start_worker("uploads")
    plan = work.submit(file)
    wait_until(
        lambda: any(one["results"] == FAILURE for one in work.buildsets(plan)), LONG, farm.log
    )
    (failed,) = (one["buildid"] for one in work.builds() if one["results"])
    told = farm.read(f"builds/{failed}/steps/run/logs/stdio/raw")
    assert "this machine refuses publish:demo-1.0" in told
    assert "program finished with exit code 7" in told
    assert not list(tmp_path.rglob("channel.json"))
    page = json.loads(farm.read(f"builds/{failed}"))["builds"][0]
    for path in (f"builds/{failed}", f"builders/{page['builderid']}/builds/{page['number']}"):
        with Visitor(farm) as visitor:
            for name, status in (("starter", 403), ("publisher", 200)):
                visitor.log_in(name, read_secret(farm.master, name))
                assert visitor.ask_for("rebuild", path) == status, (name, path)


@pytest.mark.skipif(bool(sandbox_fault()), reason="bubblewrap does not work here")
def test_a_worker_that_demands_a_sandbox_is_obeyed(work: Work, tmp_path: Path) -> None:
    """A job that asks for none runs in one, and a job that wants to see more is refused."""
    farm = work.farm
    farm.start_worker("strict", "--demand-sandbox")
    look = f"test -e {tmp_path} || echo inside"
    text = WORKS.replace("mkdir -p {out}/lib", f"{look}; mkdir -p {{out}}/lib", 1)
    text += '\n[requirements.core]\ncapabilities = ["strict"]\n'
    for name, asks in (("weaker", 'kind = "none"'), ("wider", f'readable = ["{tmp_path}"]')):
        plan = work.submit(make_project(tmp_path / name, f"{text}[sandbox]\n{asks}\n"), "core:*")
        wait_until(partial(have_ended, work, plan), LONG, farm.log)
    store = Store.at(str(tmp_path / "weaker/.torchyard/store"))
    (core,) = (one for one in store.results() if one.id == CORE)
    assert b"Z inside\n" in b"".join(read_result_log(store, core))
    (strict,) = (one["workerid"] for one in farm.agents() if one["name"].startswith("strict"))
    run, refused = (one for one in work.builds() if one["workerid"] == strict)
    assert (run["results"], refused["results"]) == (0, FAILURE)
    told = read_logs(farm, refused["buildid"])["stdio"]
    assert f"error: this machine refuses {CORE}: it requires its own sandbox" in told
    assert "hint: remove `readable` from [sandbox]" in told


@pytest.mark.skipif(bool(sandbox_fault()), reason="bubblewrap does not work here")
def test_a_job_runs_in_the_root_that_a_worker_offers(work: Work, tmp_path: Path) -> None:
    """The submitter has it as a directory, and the worker as an archive elsewhere."""
    farm = work.farm
    root = make_small_root(tmp_path / "root")
    with tarfile.open(tmp_path / "offered.tar", "w") as tar:
        tar.add(root, ".")
    farm.start_worker("rooted", "--demand-sandbox", "--root", str(tmp_path / "offered.tar"))
    text = WORKS.replace("cat {source}/*.txt", "cat /usr/only-here.txt")
    text += '\n[requirements.core]\ncapabilities = ["rooted"]\n[toolchain]\nroot = "../root"\n'
    plan = work.submit(make_project(tmp_path / "right", text), "core:*")
    wait_until(partial(have_ended, work, plan), LONG, farm.log)
    status = root / "var/lib/dpkg/status"
    changed = status.read_text(encoding="utf-8").replace("2.41-12", "2.41-13")
    status.write_text(changed, encoding="utf-8")
    plan = work.submit(make_project(tmp_path / "other", text), "core:*")
    (rooted,) = (one["workerid"] for one in farm.agents() if one["name"].startswith("rooted"))

    def tried() -> list[Build]:
        return [one for one in work.builds() if one["workerid"] == rooted and one["complete"]]

    wait_until(lambda: len(tried()) > 1, LONG, farm.log)
    store = Store.at(str(tmp_path / "right/.torchyard/store"))
    (core,) = (one for one in store.results() if one.id == CORE)
    assert (core.facts["sandbox"], core.tree.files[0].size) == ("bwrap", len("of the root\n"))
    run, refused = tried()[:2]
    assert (run["results"], refused["results"]) == (0, RETRY)
    told = read_logs(farm, refused["buildid"])["stdio"]
    assert "error: this machine has debian 13, 2 packages sha256:" in told
    assert "but the plan was made for debian 13, 2 packages sha256:" in told
    farm.run("cancel", plan)


def have_ended(work: Work, plan: str) -> bool:
    """Return whether a plan's jobs were sent, and all have ended."""
    sent = work.buildsets(plan)
    return bool(sent) and all(one["complete"] for one in sent)
