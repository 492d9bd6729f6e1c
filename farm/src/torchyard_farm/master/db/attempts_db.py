"""What is known of the tries of jobs: each is a build of Buildbot's, whose properties tell it."""

import json
from collections.abc import Generator
from typing import Any

import sqlalchemy as sa
from twisted.internet import defer

from torchyard_farm.master.builds import MACHINE
from torchyard_farm.scheduling.attempts import Attempt, AttemptVerdict

VERDICT = "verdict"
"""The property of a build that tells how it ended, unless well; the master's death leaves none."""

ATTEMPT = "attempt"
"""The property of a build that tells which attempt it is, unless the first."""


class AttemptHistory:
    """The tries of jobs that are not over, by the request that they are for.

    What is asked before each start is remembered, and read when the master starts; what decides
    about a job that was tried before is read each time. Of tries by another master nothing is
    remembered here.
    """

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._known: dict[int, list[Attempt]] | None = None

    @defer.inlineCallbacks
    def known(self, master: Any, request: int) -> Generator[Any, Any, list[Attempt]]:
        """What this master remembers."""
        if self._known is None:
            read = yield master.db.pool.do(_read, master.db.model, None)
            if self._known is None:  # else somebody else was quicker, and has remembered more since
                self._known = read
        return self._known.get(request, [])

    @defer.inlineCallbacks
    def read(self, master: Any, request: int) -> Generator[Any, Any, list[Attempt]]:
        """All tries of a request that are over."""
        if not self._shared and not (yield self.known(master, request)):
            return []
        read = yield master.db.pool.do(_read, master.db.model, request)
        return read.get(request, [])

    def lost_on(self, machine: str) -> bool:
        """Whether a machine may have been lost with a job, and not come back with it."""
        told = (self._known or {}).values()
        return self._shared or any(
            one.machine == machine and one.verdict is AttemptVerdict.LOST
            for tries in told
            for one in tries
        )

    def remember(self, request: int, tries: list[Attempt]) -> None:
        if self._known is not None:
            self._known[request] = tries

    def forget(self, request: int) -> None:
        if self._known is not None:
            self._known.pop(request, None)

    def forget_all(self) -> None:
        """Read them again when they are asked for: another master may have tried some."""
        self._known = None


def _read(connection: Any, model: Any, request: int | None) -> dict[int, list[Attempt]]:
    """The tries of a request, or of all that are open."""
    builds, requests, properties = model.builds, model.buildrequests, model.build_properties
    query = (
        sa.select(
            builds.c.id,
            builds.c.buildrequestid,
            builds.c.complete_at,
            properties.c.name,
            properties.c.value,
        )
        .join(requests, requests.c.id == builds.c.buildrequestid)
        .join(properties, properties.c.buildid == builds.c.id)
        .where(
            properties.c.name.in_((MACHINE, VERDICT)),
            requests.c.complete == 0 if request is None else requests.c.id == request,
            builds.c.complete_at.is_not(None),
        )
        .order_by(builds.c.id)
    )
    found: dict[int, dict[int, dict[str, Any]]] = {}
    for build, owner, ended, name, value in connection.execute(query):
        told = found.setdefault(owner, {}).setdefault(build, {"ended": ended})
        told[name] = json.loads(value)
    return {
        owner: [
            Attempt(
                told.get(MACHINE, ""),
                AttemptVerdict(told[VERDICT]) if VERDICT in told else None,
                float(told["ended"]),
            )
            for told in builds.values()
        ]
        for owner, builds in found.items()
    }
