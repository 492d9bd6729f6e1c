"""Things with names in Buildbot's database, where all masters see them."""

from collections.abc import Generator
from typing import Any

import sqlalchemy as sa
from twisted.internet import defer

_CLASS = "torchyard"


class SharedState:
    """Texts by name, in Buildbot's table of states."""

    def __init__(self, master: Any, name: str) -> None:
        self._master = master
        self._name = name

    @defer.inlineCallbacks
    def names(self, start: str = "") -> Generator[Any, Any, list[str]]:
        """All names, or those that begin in one way."""
        drawer = yield self._id()

        def read(connection: Any) -> list[str]:
            states = self._master.db.model.object_state
            named = states.c.name.startswith(start, autoescape=True)
            query = sa.select(states.c.name).where(states.c.objectid == drawer, named)
            return [row.name for row in connection.execute(query)]

        return (yield self._master.db.pool.do(read))

    @defer.inlineCallbacks
    def get(self, name: str) -> Generator[Any, Any, str | None]:
        return (yield self._master.db.state.getState((yield self._id()), name, None))

    @defer.inlineCallbacks
    def put(self, name: str, text: str) -> Generator[Any, Any, None]:
        yield self._master.db.state.setState((yield self._id()), name, text)

    @defer.inlineCallbacks
    def remove(self, name: str) -> Generator[Any, Any, None]:
        drawer = yield self._id()

        def delete(connection: Any) -> None:
            states = self._master.db.model.object_state
            this = sa.and_(states.c.objectid == drawer, states.c.name == name)
            connection.execute(states.delete().where(this))
            connection.commit()

        yield self._master.db.pool.do(delete)

    def _id(self) -> Any:
        return self._master.db.state.getObjectId(self._name, _CLASS)
