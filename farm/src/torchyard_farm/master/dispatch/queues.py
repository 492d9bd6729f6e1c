"""Which builders' queues are empty: Buildbot reads those of all a worker's builders after each job.

A machine that can do many classes of jobs is in many builders, most of whose queues are empty.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from buildbot.mq.base import MQBase, QueueRef
from twisted.internet import defer

from torchyard_farm.twisted_tools import async_to_deferred

T = TypeVar("T")

_ARRIVALS = (("buildrequests", None, "new"), ("buildrequests", None, "unclaimed"))


class BuilderQueues:
    """Remembers queues that were empty when they were read last, and had no arrivals since."""

    def __init__(self) -> None:
        self._consumers: list[QueueRef] = []
        self._empty: set[int] = set()
        self._arrivals = 0

    @async_to_deferred
    async def listen(self, mq: MQBase) -> None:
        """Subscribe to arrivals in this master's queues."""
        for arrival in _ARRIVALS:
            self._consumers.append(await mq.startConsuming(self._on_arrival, arrival))

    @async_to_deferred
    async def stop(self) -> None:
        while self._consumers:
            await defer.maybeDeferred(self._consumers.pop().stopConsuming)

    def _on_arrival(self, _key: object, request: Mapping[str, int]) -> None:
        self._arrivals += 1
        self._empty.discard(request["builderid"])

    @async_to_deferred
    async def read(self, builder: int, fetch: Callable[[], defer.Deferred[list[T]]]) -> list[T]:
        """Return the requests in a builder's queue; one known to be empty is not read."""
        if builder in self._empty:
            return []
        before = self._arrivals
        found = await fetch()
        if not found and before == self._arrivals:  # else a request arrived while it was read
            self._empty.add(builder)
        return found

    def forget(self) -> None:
        """Read all queues again: requests added by other masters are not announced."""
        self._empty.clear()
