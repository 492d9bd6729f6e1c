"""Jobs that this master has claimed, and that none of its builds does.

Buildbot claims a job before it begins a build. If it is disturbed between the two, as by a restart
of its database, it never comes back to the job.
"""

from collections.abc import Generator
from typing import Any

import sqlalchemy as sa
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.builds import current_builds

_PATIENCE = 60.0
"""Seconds that a job may be in no build, as it just begins or ends ..."""

_LOOKS = 3
"""... and looks: while a master stands still, or its database is away, nothing begins."""


class StaleClaims:
    """Gives such jobs back to the queue."""

    def __init__(self) -> None:
        self._looks: dict[int, list[float]] = {}

    @defer.inlineCallbacks
    def give_back(self, master: Any) -> Generator[Any, Any, None]:
        claimed = yield master.db.pool.do(_read_claimed, master.db.model, master.masterid)
        builds = current_builds(master)
        idle = claimed - {request.id for build in builds for request in build.requests}
        now = master.reactor.seconds()
        self._looks = {request: [*self._looks.get(request, ()), now] for request in sorted(idle)}
        found = [
            request
            for request, looks in self._looks.items()
            if len(looks) >= _LOOKS and now - looks[0] > _PATIENCE
        ]
        if found:
            log.msg(f"requests {found} were claimed, and nobody does them: they are given back")
            for request in found:
                master.botmaster.remove_in_progress_buildrequest(request)
            yield master.data.updates.unclaimBuildRequests(found)


def _read_claimed(connection: Any, model: Any, master: int) -> set[int]:
    requests, claims = model.buildrequests, model.buildrequest_claims
    query = (
        sa.select(requests.c.id)
        .join(claims, claims.c.brid == requests.c.id)
        .where(requests.c.complete == 0, claims.c.masterid == master)
    )
    return {row.id for row in connection.execute(query)}
