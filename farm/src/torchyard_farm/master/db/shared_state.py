"""Key-value storage in Buildbot's database, shared by all masters."""

import sqlalchemy as sa
from buildbot.master import BuildMaster
from twisted.internet import defer

from torchyard_farm.twisted_tools import async_to_deferred

_CLASS = "torchyard"


class SharedState:
    """Strings by key, in Buildbot's table `object_state`."""

    def __init__(self, master: BuildMaster, name: str) -> None:
        self._master = master
        self._name = name

    @async_to_deferred
    async def names(self, start: str = "") -> list[str]:
        """Return all keys, or those with a prefix."""
        owner = await self._id()

        def read(connection: sa.Connection) -> list[str]:
            states = self._master.db.model.object_state
            named = states.c.name.startswith(start, autoescape=True)
            query = sa.select(states.c.name).where(states.c.objectid == owner, named)
            return [row.name for row in connection.execute(query)]

        return await self._master.db.pool.do(read)

    @async_to_deferred
    async def get(self, name: str) -> str | None:
        found: str | None = await self._master.db.state.getState(await self._id(), name, None)
        return found

    @async_to_deferred
    async def put(self, name: str, text: str) -> None:
        await self._master.db.state.setState(await self._id(), name, text)

    @async_to_deferred
    async def remove(self, name: str) -> None:
        owner = await self._id()

        def delete(connection: sa.Connection) -> None:
            states = self._master.db.model.object_state
            this = sa.and_(states.c.objectid == owner, states.c.name == name)
            connection.execute(states.delete().where(this))
            connection.commit()

        await self._master.db.pool.do(delete)

    def _id(self) -> defer.Deferred[int]:
        return self._master.db.state.getObjectId(self._name, _CLASS)
