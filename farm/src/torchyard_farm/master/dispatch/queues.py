"""Which builders have nothing to do: Buildbot asks all of a worker's whenever a job of it ends.

A machine that can do many kinds of jobs is in many builders, most of which have an empty queue.
"""

from collections.abc import Generator
from typing import Any

from twisted.internet import defer

_ARRIVALS = (("buildrequests", None, "new"), ("buildrequests", None, "unclaimed"))


class BuilderQueues:
    """The builders whose queue was empty when it was read last, and got nothing since."""

    def __init__(self) -> None:
        self._consumers: list[Any] = []
        self._empty: set[int] = set()
        self._arrivals = 0

    @defer.inlineCallbacks
    def listen(self, mq: Any) -> Generator[Any, Any, None]:
        """Hear of all that comes into a queue of this master."""
        for arrival in _ARRIVALS:
            self._consumers.append((yield mq.startConsuming(self._hear, arrival)))

    @defer.inlineCallbacks
    def stop(self) -> Generator[Any, Any, None]:
        while self._consumers:
            yield self._consumers.pop().stopConsuming()

    def _hear(self, _key: object, told: dict[str, Any]) -> None:
        self._arrivals += 1
        self._empty.discard(told["builderid"])

    @defer.inlineCallbacks
    def read(self, builder: int, fetch: Any) -> Generator[Any, Any, list[dict[str, Any]]]:
        """What waits in the queue of a builder; one that is known to be empty is not read."""
        if builder in self._empty:
            return []
        before = self._arrivals
        found = yield fetch()
        if not found and before == self._arrivals:  # else something came while it was read
            self._empty.add(builder)
        return found

    def forget(self) -> None:
        """Read all of them again: what another master did is not heard of."""
        self._empty.clear()
