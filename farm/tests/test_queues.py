"""Queues that are known to be empty are not read, and none is overlooked."""

from collections.abc import Callable

import pytest
from buildbot.mq.base import MQBase
from twisted.internet import defer

from farm.tests.stand_ins import stands_in
from torchyard_farm.master.dispatch.dispatcher import BuilderQueues

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")

Hear = Callable[[object, dict[str, int]], None]


class Router:
    """Stand-in for Buildbot's message queue."""

    def __init__(self) -> None:
        self.ears: dict[tuple[str, str | None, str], Hear] = {}

    def startConsuming(self, ear: Hear, what: tuple[str, str | None, str]) -> object:  # noqa: N802
        self.ears[what] = ear
        return defer.succeed(self)

    def stopConsuming(self) -> None:  # noqa: N802
        self.ears.clear()

    def arrive(self, builder: int, how: str) -> None:
        self.ears["buildrequests", None, how](None, {"builderid": builder})


class Table:
    """Stand-in for the database: counts its queries."""

    def __init__(self, *answers: list[int]) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self) -> defer.Deferred[list[int]]:
        self.asked += 1
        return defer.succeed(self.answers.pop(0))


@pytest.fixture
def router() -> Router:
    return Router()


@pytest.fixture
def queues(router: Router) -> BuilderQueues:
    queues = BuilderQueues()
    queues.listen(stands_in(MQBase, router))
    return queues


def read(
    queues: BuilderQueues, builder: int, fetch: Callable[[], defer.Deferred[list[int]]]
) -> object:
    found: list[object] = []
    queues.read(builder, fetch).addCallback(found.append)
    return found[0]


def test_an_empty_queue_is_read_once(queues: BuilderQueues) -> None:
    table = Table([], [7])
    assert read(queues, 1, table) == read(queues, 1, table) == []
    assert table.asked == 1
    assert read(queues, 2, table) == [7], "another one"


@pytest.mark.parametrize("how", ["new", "unclaimed"])
def test_it_is_read_again_when_something_arrived(
    queues: BuilderQueues, router: Router, how: str
) -> None:
    table = Table([], [7], [7])
    read(queues, 1, table)
    router.arrive(2, how)
    assert read(queues, 1, table) == []
    router.arrive(1, how)
    assert read(queues, 1, table) == [7]
    assert read(queues, 1, table) == [7], "one that is not empty is always read"


def test_what_arrives_while_it_is_read_is_not_overlooked(
    queues: BuilderQueues, router: Router
) -> None:
    def fetch() -> defer.Deferred[list[int]]:
        router.arrive(1, "new")
        return defer.succeed([])

    assert read(queues, 1, fetch) == []
    assert read(queues, 1, Table([7])) == [7]


def test_all_are_read_again_when_somebody_says_so(queues: BuilderQueues) -> None:
    table = Table([], [7])
    read(queues, 1, table)
    queues.forget()
    assert read(queues, 1, table) == [7]


def test_nothing_is_heard_after_the_end(queues: BuilderQueues, router: Router) -> None:
    queues.stop()
    assert not router.ears
