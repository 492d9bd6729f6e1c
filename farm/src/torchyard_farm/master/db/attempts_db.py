"""The attempts of jobs in Buildbot's database: each is a build with properties."""

import json
from collections.abc import Mapping

import sqlalchemy as sa
from buildbot.db.model import Model
from buildbot.master import BuildMaster

from torchyard_farm.master.builds import MACHINE
from torchyard_farm.scheduling.attempts import AttemptRecord, AttemptVerdict
from torchyard_farm.twisted_tools import async_to_deferred

VERDICT = "verdict"
"""The property with the verdict of an unsuccessful build; missing if its master was killed."""

ATTEMPT = "attempt"
"""The property with the number of a build's attempt, unless it is the first."""


class AttemptHistory:
    """The attempts of unfinished jobs, by request.

    Attempts needed before each start are read once, when the master starts, and kept in memory. For
    decisions about a retried job, they are read from the database each time, as another master may
    have added some.
    """

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._cache: dict[int, list[AttemptRecord]] | None = None

    @async_to_deferred
    async def cached(self, master: BuildMaster, request: int) -> list[AttemptRecord]:
        """Return the attempts of a request in this master's memory."""
        if self._cache is None:
            read = await master.db.pool.do(_read, master.db.model, None)
            if self._cache is None:  # else a concurrent call has filled it, and more was added
                self._cache = read
        return self._cache.get(request, [])

    @async_to_deferred
    async def read(self, master: BuildMaster, request: int) -> list[AttemptRecord]:
        """Return all completed attempts of a request."""
        if not self._shared and not await self.cached(master, request):
            return []
        read = await master.db.pool.do(_read, master.db.model, request)
        return read.get(request, [])

    def may_be_lost_on(self, machine: str) -> bool:
        """Return whether a machine may have been lost with a job and not returned with it."""
        return self._shared or any(
            attempt.machine == machine and attempt.verdict is AttemptVerdict.LOST
            for attempts in (self._cache or {}).values()
            for attempt in attempts
        )

    def remember(self, request: int, attempts: list[AttemptRecord]) -> None:
        if self._cache is not None:
            self._cache[request] = attempts

    def forget(self, request: int) -> None:
        if self._cache is not None:
            self._cache.pop(request, None)

    def forget_all(self) -> None:
        """Clear the cache, as another master may have added attempts."""
        self._cache = None


def _read(
    connection: sa.Connection, model: type[Model], request: int | None
) -> dict[int, list[AttemptRecord]]:
    """Read the attempts of a request, or of all unfinished requests."""
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
    ends: dict[int, float] = {}
    found: dict[int, dict[int, dict[str, str]]] = {}
    for build, owner, ended, name, value in connection.execute(query):
        ends[build] = float(ended)
        found.setdefault(owner, {}).setdefault(build, {})[name] = json.loads(value)
    return {
        owner: [_attempt(row, ends[build]) for build, row in rows.items()]
        for owner, rows in found.items()
    }


def _attempt(row: Mapping[str, str], ended: float) -> AttemptRecord:
    verdict = AttemptVerdict(row[VERDICT]) if VERDICT in row else None
    return AttemptRecord(row.get(MACHINE, ""), verdict, ended)
