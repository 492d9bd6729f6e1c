"""How the master reaches its database, and lives through a restart of PostgreSQL.

Buildbot itself asks again, but only MySQL.
"""

import time
from collections.abc import Generator
from typing import Any

import sqlalchemy as sa
from buildbot.util.service import BuildbotService
from twisted.internet import defer
from twisted.python import log

from torchyard.errors import ElsewhereError

_PAUSE = 0.5
_PATIENCE = 24 * 3600
"""Seconds that a broken database may take to come back: as long as Buildbot gives MySQL."""

_POSTGRES = "postgresql://"
_CONNECTIONS = 8


def database_of(url: str) -> dict[str, Any]:
    """What Buildbot wants to know of its database.

    The driver is named, as which one is usual depends on SQLAlchemy. Connections are kept: usually
    all but five are opened anew for each question.
    """
    if not url.startswith(_POSTGRES):
        return {"db_url": url}
    return {
        "db_url": url.replace(_POSTGRES, "postgresql+psycopg2://", 1),
        "engine_kwargs": {"pool_size": _CONNECTIONS, "max_overflow": 0},
    }


def reach(url: str) -> None:
    """Ask a PostgreSQL whether it is there, and lets us in."""
    if not url.startswith(_POSTGRES):
        return
    engine = sa.create_engine(database_of(url)["db_url"])
    try:
        engine.connect().close()
    except sa.exc.OperationalError as error:
        why = " ".join(str(error.orig).split())
        msg = f"the database can't be reached: {why}"
        raise ElsewhereError(
            msg, hint="is `database` in farm.toml right, and is it there?"
        ) from error
    finally:
        engine.dispose()


class Database(BuildbotService):
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
