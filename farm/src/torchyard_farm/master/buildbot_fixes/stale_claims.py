"""Requests that this master has claimed without starting a build.

Defect of Buildbot 4.3 (`process/buildrequestdistributor.py`): it claims a request before it starts
the build. If that is interrupted, such as by a restart of the database, the claim stays forever.
"""

import sqlalchemy as sa
from buildbot.db.model import Model
from buildbot.master import BuildMaster
from twisted.python import log

from torchyard_farm.master.builds import current_builds
from torchyard_farm.twisted_tools import async_to_deferred

_PATIENCE = 60.0
"""Seconds that a claimed request may lack a build, as one is just starting or ending ..."""

_SIGHTINGS = 3
"""... and how often it must be seen so: nothing starts while a master or database is suspended."""


class StaleClaims:
    """Releases such claims."""

    def __init__(self) -> None:
        self._seen: dict[int, list[float]] = {}

    @async_to_deferred
    async def release(self, master: BuildMaster) -> None:
        claimed = await master.db.pool.do(_read_claimed, master.db.model, master.masterid)
        builds = current_builds(master)
        idle = claimed - {request.id for build in builds for request in build.requests}
        now = master.reactor.seconds()
        self._seen = {request: [*self._seen.get(request, ()), now] for request in sorted(idle)}
        stale = [
            request
            for request, seen in self._seen.items()
            if len(seen) >= _SIGHTINGS and now - seen[0] > _PATIENCE
        ]
        if stale:
            log.msg(f"requests {stale} were claimed but never started: their claims are released")
            for request in stale:
                master.botmaster.remove_in_progress_buildrequest(request)
            await master.data.updates.unclaimBuildRequests(stale)


def _read_claimed(connection: sa.Connection, model: type[Model], master: int) -> set[int]:
    requests, claims = model.buildrequests, model.buildrequest_claims
    query = (
        sa.select(requests.c.id)
        .join(claims, claims.c.brid == requests.c.id)
        .where(requests.c.complete == 0, claims.c.masterid == master)
    )
    return {row.id for row in connection.execute(query)}
