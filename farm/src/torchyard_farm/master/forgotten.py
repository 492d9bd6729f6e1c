"""Jobs that this master has claimed, and that none of its builds does.

Buildbot claims a job before it begins a build. If it is disturbed between the two, as by a restart
of its database, it never comes back to the job.
"""

from collections.abc import Generator
from typing import Any

import sqlalchemy as sa
from twisted.internet import defer
from twisted.python import log


class Forgotten:
    """Gives such jobs back to the queue when they are found twice: others just begin or end."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    @defer.inlineCallbacks
    def give_back(self, master: Any) -> Generator[Any, Any, None]:
        claimed = yield master.db.pool.do(_read_claimed, master.db.model, master.masterid)
        builds = (b for builder in master.botmaster.builders.values() for b in builder.building)
        idle = claimed - {request.id for build in builds for request in build.requests}
        found, self._seen = sorted(idle & self._seen), idle
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
