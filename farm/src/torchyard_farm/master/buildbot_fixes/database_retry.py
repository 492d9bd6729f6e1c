"""Keeps the master running while PostgreSQL restarts.

Defect of Buildbot 4.3 (`db/enginestrategy.py`): it reconnects to MySQL only.
"""

import time
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from buildbot.util.service import BuildbotService
from sqlalchemy.engine.interfaces import DBAPIConnection
from twisted.python import log

from torchyard_farm.twisted_tools import async_to_deferred

_PAUSE = 0.5
_PATIENCE = 24 * 3600
"""Seconds that the database may be unavailable: as long as Buildbot waits for MySQL."""


class DatabaseRetry(BuildbotService):
    """Makes queries wait while the database is unavailable."""

    name = "database"

    def checkConfig(self) -> None:
        pass

    @async_to_deferred
    async def reconfigService(self) -> None:
        await super().reconfigService()
        engine = self.master.db.pool.engine
        if engine.dialect.name == "postgresql" and not sa.event.contains(
            engine, "do_connect", _connect
        ):
            sa.event.listen(engine, "do_connect", _connect)
            engine.should_retry = _should_retry


def _connect(
    dialect: sa.Dialect, _record: object, args: Sequence[str], options: Mapping[str, object]
) -> DBAPIConnection:
    """Connect, in one of the database threads; retry until the database is back."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return dialect.connect(*args, **options)
        except dialect.loaded_dbapi.OperationalError as error:
            if time.monotonic() > until:
                raise
            log.msg(f"the database is unavailable: {error}")
            time.sleep(_PAUSE)


def _should_retry(error: sa.exc.OperationalError) -> bool:
    """Return whether a query failed only because its connection was lost."""
    return error.connection_invalidated
