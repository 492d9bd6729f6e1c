"""The services that other tests stand on do what those tests believe they do."""

import hashlib
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from threading import Barrier
from urllib.parse import urlsplit

import obstore
import psutil
import pytest
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    PermissionDeniedError,
    PreconditionError,
)
from obstore.store import S3Store, from_url
from tests.support.faults import Fault, FaultyProxy, Request, only
from tests.support.services import NotStartedError, Place, S3Server

pytestmark = pytest.mark.integration

SHORT = timedelta(seconds=2)


def read(store: S3Store, path: str) -> bytes:
    return bytes(obstore.get(store, path).bytes())


# ------------------------------------------------------------------------------ the server


def test_create_happens_once(s3_place: Place) -> None:
    store = s3_place.store()
    obstore.put(store, "name", b"first", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(store, "name", b"second", mode="create")
    assert read(store, "name") == b"first"


def test_one_of_many_racing_writers_wins(s3_place: Place) -> None:
    writers = 16  # SeaweedFS may let each loser wait a second for its turn
    barrier = Barrier(writers)

    def write(writer: int) -> bool:
        store = s3_place.store(timeout=timedelta(minutes=1))
        barrier.wait()
        try:
            obstore.put(store, "name", str(writer).encode(), mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(writers) as pool:
        won = list(pool.map(write, range(writers)))
    assert sum(won) == 1
    assert read(s3_place.store(), "name") == str(won.index(True)).encode()


def test_update_needs_the_present_version(s3_place: Place) -> None:
    store = s3_place.store()
    first = obstore.put(store, "name", b"first")["e_tag"]
    second = obstore.put(store, "name", b"second", mode={"e_tag": first})["e_tag"]
    assert obstore.head(store, "name")["e_tag"] == second != first
    with pytest.raises(PreconditionError):
        obstore.put(store, "name", b"third", mode={"e_tag": first})
    assert read(store, "name") == b"second"


def test_large_objects_come_in_parts(s3_place: Place, s3_proxy: FaultyProxy) -> None:
    block = os.urandom(1024 * 1024)
    blocks = 20
    store = s3_place.behind(s3_proxy.endpoint).store()
    stream: Iterator[bytes] = (block for _ in range(blocks))
    obstore.put(store, "large", stream)
    assert s3_proxy.counts == {"POST": 2, "PUT": 4}  # start, parts of 5 MB, end

    digest = hashlib.sha256()
    for chunk in obstore.get(store, "large").stream():
        digest.update(chunk)
    assert digest.digest() == hashlib.sha256(block * blocks).digest()
    middle = obstore.get_range(store, "large", start=len(block) - 2, length=4)
    assert bytes(middle) == block[-2:] + block[:2]


def test_long_lists_come_in_pages(s3_place: Place, s3_proxy: FaultyProxy) -> None:
    names = [f"{i:04}" for i in range(1100)]
    store, direct = s3_place.behind(s3_proxy.endpoint).store(), s3_place.store()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: obstore.put(direct, name, b""), names))
    assert sorted(meta["path"] for meta in obstore.list(store).collect()) == names
    assert s3_proxy.counts == {"GET": 2}


def test_places_are_apart(s3_server: S3Server) -> None:
    one, other = s3_server.place(), s3_server.place()
    obstore.put(one.store(), "name", b"")
    assert obstore.list(other.store()).collect() == []


def test_strangers_and_unknown_buckets_are_refused(s3_server: S3Server, s3_place: Place) -> None:
    stranger = replace(s3_place, secret_key="wrong")
    with pytest.raises(PermissionDeniedError):
        obstore.put(stranger.store(), "name", b"")
    with pytest.raises(FileNotFoundError, match="NoSuchBucket"):
        obstore.put(s3_server.place("not-there").store(), "name", b"")
    s3_server.create_bucket("soon-there")
    obstore.put(s3_server.place("soon-there").store(), "name", b"")


def test_child_processes_reach_it_by_environment(s3_place: Place) -> None:
    program = (
        "import sys, obstore; from obstore.store import from_url;"
        "obstore.put(from_url(sys.argv[1]), 'name', b'from a child')"
    )
    env = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    command = [sys.executable, "-c", program, s3_place.url]
    subprocess.run(command, env=env | s3_place.environment, check=True)
    assert read(s3_place.store(), "name") == b"from a child"


def test_client_options_hide_allow_http(s3_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    obstore.put(from_url(s3_place.url), "name", b"")
    with pytest.raises(GenericError, match="builder error"):
        obstore.put(from_url(s3_place.url, client_options={"timeout": "9s"}), "name", b"")


def test_servers_start_side_by_side_and_leave_nothing(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    for directory in directories:
        directory.mkdir()
    with ExitStack() as stack:
        with ThreadPoolExecutor() as pool:
            servers = list(pool.map(lambda d: stack.enter_context(S3Server(d)), directories))
        one, other = (server.place() for server in servers)
        obstore.put(one.store(), "name", b"")
        with pytest.raises(PermissionDeniedError):
            obstore.put(one.behind(other.endpoint).store(), "name", b"")
    places = [child.as_dict(["cwd"])["cwd"] for child in psutil.Process().children()]
    assert not [place for place in places if place and str(tmp_path) in place]
    for server in servers:
        with pytest.raises(urllib.error.URLError, match="refused"):
            urllib.request.urlopen(server.endpoint)  # noqa: S310
        port = server.ports["master.port.grpc"]
        assert not Path(f"/tmp/seaweedfs-master-grpc-{port}.sock").exists()


def test_a_server_that_does_not_start_shows_its_log(tmp_path: Path) -> None:
    (tmp_path / "filerldb2").write_text("in the way of its database", encoding="utf-8")
    with pytest.raises(NotStartedError, match=r"(?s)exit code \d.*filerldb2"), S3Server(tmp_path):
        pass


# ------------------------------------------------------------------------------- the proxy


def client(place: Place, proxy: FaultyProxy, fault: Fault, *, retries: int = 0) -> S3Store:
    """A client behind the proxy, in a hurry only where it must: tests share busy machines."""
    behind = place.behind(proxy.endpoint)
    if fault is Fault.SILENCE:
        return behind.store(retries=retries, timeout=SHORT)
    return behind.store(retries=retries)


REFUSED = [
    Fault.SLOW_DOWN,
    Fault.INTERNAL_ERROR,
    Fault.SILENCE,
    Fault.LOSE_REQUEST,
    Fault.TEAR_REQUEST,
]
DONE = [Fault.LOSE_ANSWER, Fault.CUT_ANSWER]


def name(fault: Fault) -> str:
    return fault.name.lower()


@pytest.mark.parametrize("fault", [*REFUSED, *DONE], ids=name)
def test_faults_of_writing(fault: Fault, s3_place: Place, s3_proxy: FaultyProxy) -> None:
    s3_proxy.plan = only(fault, method="PUT")
    hasty = client(s3_place, s3_proxy, fault)
    with pytest.raises(GenericError):
        obstore.put(hasty, "name", b"written")
    there = [meta["path"] for meta in obstore.list(s3_place.store()).collect()]
    assert there == (["name"] if fault in DONE else [])
    obstore.put(client(s3_place, s3_proxy, Fault.NONE), "name", b"written again")
    assert s3_proxy.counts["PUT"] == 2


@pytest.mark.parametrize("fault", [*REFUSED, *DONE], ids=name)
def test_faults_of_reading(fault: Fault, s3_place: Place, s3_proxy: FaultyProxy) -> None:
    content = os.urandom(300_000)
    obstore.put(s3_place.store(), "name", content)
    s3_proxy.plan = only(fault, method="GET", times=2)
    with pytest.raises(GenericError):
        read(client(s3_place, s3_proxy, fault), "name")
    assert read(client(s3_place, s3_proxy, fault, retries=3), "name") == content
    assert s3_proxy.counts == {"GET": 3}


def test_a_cut_answer_is_cut_in_the_middle(s3_place: Place, s3_proxy: FaultyProxy) -> None:
    content = os.urandom(1_000_000)
    obstore.put(s3_place.store(), "name", content)
    s3_proxy.plan = only(Fault.CUT_ANSWER, method="GET")
    hasty = client(s3_place, s3_proxy, Fault.CUT_ANSWER)
    received = b""
    with pytest.raises(GenericError, match="body error"):  # noqa: PT012 (it starts well)
        for chunk in obstore.get(hasty, "name").stream(min_chunk_size=1):
            received += bytes(chunk)
    assert content.startswith(received)
    assert 0 < len(received) <= len(content) // 2


def test_plans_see_each_request(s3_place: Place, s3_proxy: FaultyProxy) -> None:
    def plan(request: Request) -> Fault:
        return Fault.SLOW_DOWN if request.path.endswith("/b") and request.number < 4 else Fault.NONE

    s3_proxy.plan = plan
    patient = client(s3_place, s3_proxy, Fault.SLOW_DOWN, retries=3)
    for path in ("a", "b"):
        obstore.put(patient, path, b"12345", mode="create")
    seen = [(r.number, r.method, r.path.rpartition("/")[2], r.size) for r in s3_proxy.requests]
    assert seen == [(i, "PUT", "a" if i == 1 else "b", 5) for i in range(1, 5)]


def test_the_proxy_keeps_connections_and_understands_chunks(
    s3_place: Place, s3_proxy: FaultyProxy
) -> None:
    url = obstore.sign(s3_place.store(), "PUT", "name", timedelta(minutes=1))
    target = url.removeprefix(s3_place.endpoint)
    connection = HTTPConnection(urlsplit(s3_proxy.endpoint).netloc, timeout=300)
    with closing(connection):
        local = None
        for content in (b"first", b"the second"):
            # Signed for the server's own host, which the proxy must not replace by another.
            headers = {"Host": urlsplit(s3_place.endpoint).netloc, "Transfer-Encoding": "chunked"}
            parts = iter([content[:2], content[2:]])
            connection.request("PUT", target, parts, headers, encode_chunked=True)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"")
            assert connection.sock is not None
            assert connection.sock.getsockname() == (local or connection.sock.getsockname())
            local = connection.sock.getsockname()
            assert read(s3_place.store(), "name") == content


def test_a_proxy_whose_plan_fails_says_so(s3_server: S3Server, s3_place: Place) -> None:
    def plan(request: Request) -> Fault:
        raise LookupError(request.method)

    def write_through_it() -> None:
        with FaultyProxy(s3_server.endpoint) as proxy:
            proxy.plan = plan
            with pytest.raises(GenericError):
                obstore.put(s3_place.behind(proxy.endpoint).store(), "name", b"")

    with pytest.raises(ExceptionGroup, match="the proxy itself failed"):
        write_through_it()


# What obstore makes of these faults: torchyard's store has to know, and a release may change it.


@pytest.mark.parametrize("fault", DONE, ids=name)
def test_a_retried_create_denies_its_own_success(
    fault: Fault, s3_place: Place, s3_proxy: FaultyProxy
) -> None:
    s3_proxy.plan = only(fault, method="PUT")
    patient = client(s3_place, s3_proxy, fault, retries=3)
    with pytest.raises(AlreadyExistsError):
        obstore.put(patient, "name", b"mine", mode="create")
    assert s3_proxy.counts == {"PUT": 2}
    assert read(s3_place.store(), "name") == b"mine"


@pytest.mark.parametrize("fault", DONE, ids=name)
def test_a_retried_update_denies_its_own_success(
    fault: Fault, s3_place: Place, s3_proxy: FaultyProxy
) -> None:
    tag = obstore.put(s3_place.store(), "name", b"before")["e_tag"]
    s3_proxy.plan = only(fault, method="PUT")
    patient = client(s3_place, s3_proxy, fault, retries=3)
    with pytest.raises(PreconditionError):
        obstore.put(patient, "name", b"mine", mode={"e_tag": tag})
    assert s3_proxy.counts == {"PUT": 2}
    assert read(s3_place.store(), "name") == b"mine"


def test_conditional_writes_are_not_repeated_after_a_time_out(
    s3_place: Place, s3_proxy: FaultyProxy
) -> None:
    s3_proxy.plan = only(Fault.SILENCE, method="PUT")
    patient = client(s3_place, s3_proxy, Fault.SILENCE, retries=3)
    with pytest.raises(GenericError):
        obstore.put(patient, "name", b"", mode="create")
    assert s3_proxy.counts == {"PUT": 1}
    s3_proxy.plan = only(Fault.SILENCE, method="PUT")
    obstore.put(patient, "name", b"")  # an unconditional one is
    assert s3_proxy.counts == {"PUT": 3}


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.TEAR_REQUEST], ids=name)
def test_a_failed_part_is_sent_again_alone(
    fault: Fault, s3_place: Place, s3_proxy: FaultyProxy
) -> None:
    content = os.urandom(12_000_000)
    s3_proxy.plan = only(fault, method="PUT")
    obstore.put(client(s3_place, s3_proxy, fault, retries=3), "large", content)
    assert s3_proxy.counts == {"POST": 2, "PUT": 4}
    assert read(s3_place.store(), "large") == content


def test_an_upload_in_parts_that_fails_is_taken_back(
    s3_place: Place, s3_proxy: FaultyProxy
) -> None:
    s3_proxy.plan = only(Fault.SLOW_DOWN, method="PUT")
    with pytest.raises(GenericError):
        obstore.put(client(s3_place, s3_proxy, Fault.SLOW_DOWN), "large", bytes(12_000_000))
    assert s3_proxy.counts["DELETE"] == 1
    assert obstore.list(s3_place.store()).collect() == []
