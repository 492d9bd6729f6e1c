"""Offers a job first to the worker that was at it when the master stopped."""

from collections.abc import Generator
from typing import Any

from twisted.internet import defer

from torchyard_farm.affinity import Try, may_take
from torchyard_farm.buildbot.step import verdict_of


class Affinity:
    """What Buildbot asks before it starts a build: `canStartBuild` of all builders."""

    def __init__(self, grace: int) -> None:
        self._grace = grace
        self._started: float | None = None

    @defer.inlineCallbacks
    def __call__(
        self, builder: Any, worker_for_builder: Any, request: Any
    ) -> Generator[Any, Any, bool]:
        reactor = builder.master.reactor
        if self._started is None:
            self._started = reactor.seconds()
            again = builder.master.botmaster.maybeStartBuildsForAllBuilders
            reactor.callLater(self._grace + 1, again)
        since = reactor.seconds() - self._started
        if since > self._grace:
            return True
        last = None
        for build in (yield builder.master.data.get(("buildrequests", request.id, "builds")))[-1:]:
            verdict = yield verdict_of(builder.master, build["buildid"])
            last = Try(build["workerid"], verdict)
        return may_take(worker_for_builder.worker.workerid, last, since, self._grace)
