"""What holds for a directory holds for a real S3 server: the same tests, on another store."""

from types import FunctionType

import pytest
from tests.support.faults import Fault, FaultyProxy, Plan, Request, only
from tests.support.services import Place
from tests.unit import test_channel, test_store, test_swap

from torchyard.errors import ElsewhereError
from torchyard.publish.channel.channel import Channel
from torchyard.store.objects import Objects
from torchyard.store.store import Store
from torchyard.store.tags import content_tag

pytestmark = pytest.mark.integration

ONLY_IN_A_DIRECTORY = {
    "test_a_place_that_is_none",
    "test_gc_does_not_mind_writers_that_come_and_go",  # a directory shows their files
    "test_the_first_results_are_read_by_many_threads",  # it reads them as files
    "test_gc_removes_what_killed_writers_left",  # a bucket shows no such files
}


def copy_of(test: FunctionType) -> FunctionType:
    """Return a function that can be marked without the one that it is a copy of."""
    copy = FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__)
    copy.__dict__.update(test.__dict__)
    copy.__annotations__ = test.__annotations__
    return copy


AT_NIGHT = {"test_every_death_is_mended_by_a_second_try"}
"""It takes half a minute; test_channel_faults.py kills writers of buckets in CI."""

globals().update(
    {
        name: pytest.mark.slow(copy_of(test)) if name in AT_NIGHT else test
        for shared in (test_store, test_swap, test_channel)
        for name, test in vars(shared).items()
        if name.startswith("test_") and name not in ONLY_IN_A_DIRECTORY
    }
)


@pytest.fixture
def url(s3_place: Place, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    return s3_place.url


@pytest.fixture
def store(url: str) -> Store:
    return Store.at(url)


@pytest.fixture
def objects(url: str) -> Objects:
    return Objects(url)


@pytest.fixture
def channel(url: str) -> Channel:
    return Channel.at(url, make=True)


@pytest.fixture
def far(
    url: str, s3_place: Place, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> Objects:
    """The same objects, reached through a proxy."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_place.behind(s3_proxy.endpoint).endpoint)
    return Objects(url)


FAULTS = [
    Fault.SLOW_DOWN,
    Fault.INTERNAL_ERROR,
    Fault.LOSE_REQUEST,
    Fault.TEAR_REQUEST,
    Fault.LOSE_ANSWER,
    Fault.CUT_ANSWER,
    Fault.CONFLICT,
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_swap_whose_request_fails_is_ours(
    objects: Objects, far: Objects, s3_proxy: FaultyProxy, fault: Fault
) -> None:
    objects.write("a", b"old")
    s3_proxy.plan = only(fault, method="PUT", times=2)
    assert far.swap("a", b"new", content_tag(b"old"))
    assert objects.read("a") == b"new"
    assert s3_proxy.counts["PUT"] > 1


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_failed_request_creates_is_ours(
    objects: Objects, far: Objects, s3_proxy: FaultyProxy, fault: Fault
) -> None:
    s3_proxy.plan = only(fault, method="PUT", times=2)
    assert far.create("a", b"new")
    assert objects.read("a") == b"new"
    assert s3_proxy.counts["PUT"] > 1


def test_a_swap_with_a_lost_answer_that_another_overwrote_is_not_ours(
    objects: Objects, far: Objects, s3_proxy: FaultyProxy
) -> None:
    objects.write("a", b"old")
    s3_proxy.plan = overtaken(objects, "a")
    assert not far.swap("a", b"new", content_tag(b"old"))
    assert objects.read("a") == b"other"


def overtaken(objects: Objects, key: str) -> Plan:
    """Lose the first answer; before the second request, somebody else swaps the object."""
    puts = 0

    def plan(request: Request) -> Fault:
        nonlocal puts
        puts += request.method == "PUT" and request.path.endswith(key)
        if request.method == "PUT" and puts == 1:
            return Fault.LOSE_ANSWER
        if puts == 2:
            objects.write(key, b"other")
        return Fault.NONE

    return plan


def test_what_the_server_refuses_is_told_in_its_own_words(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(ElsewhereError, match="SignatureDoesNotMatch: The request") as caught:
        Objects(url).read("channel.json")
    assert "<" not in str(caught.value), "no XML"
