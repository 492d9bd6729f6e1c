"""Lets the master live through a restart of PostgreSQL.

Buildbot (`db/enginestrategy.py`) reconnects to MySQL only.
"""

import time
from collections.abc import Generator
from typing import Any

import sqlalchemy as sa
from buildbot.util.service import BuildbotService
from twisted.internet import defer
from twisted.python import log

_PAUSE = 0.5
_PATIENCE = 24 * 3600
"""Seconds that a broken database may take to come back: as long as Buildbot gives MySQL."""


class DatabaseRetry(BuildbotService):
    """Whoever asks the database while it is away waits for it."""

    name = "database"

    def checkConfig(self) -> None:
        pass

    @defer.inlineCallbacks
    def reconfigService(self) -> Generator[Any, Any, None]:
        yield super().reconfigService()
        engine = self.master.db.pool.engine
        if engine.dialect.name == "postgresql" and not sa.event.contains(
            engine, "do_connect", _connect
        ):
            sa.event.listen(engine, "do_connect", _connect)
            engine.should_retry = _should_retry


def _connect(dialect: Any, _record: Any, args: Any, options: Any) -> Any:
    """Connect, in one of the threads that wait for the database."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return dialect.connect(*args, **options)
        except dialect.loaded_dbapi.OperationalError as error:
            if time.monotonic() > until:
                raise
            log.msg(f"the database is away: {error}")
            time.sleep(_PAUSE)


def _should_retry(error: sa.exc.OperationalError) -> bool:
    """Whether a request failed with its connection, and nothing else."""
    return error.connection_invalidated
