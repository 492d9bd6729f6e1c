"""The address of Buildbot's database, and whether it is reachable."""

from typing import NotRequired, TypedDict

import sqlalchemy as sa

from torchyard.errors import ElsewhereError

_POSTGRES = "postgresql://"
_CONNECTIONS = 8


class DatabaseConfig(TypedDict):
    """The value of `db` in Buildbot's configuration."""

    db_url: str
    engine_kwargs: NotRequired[dict[str, int]]


def database_config(url: str) -> DatabaseConfig:
    """Return Buildbot's configuration of a database.

    It names the driver, since SQLAlchemy's default changes between versions. All connections are
    kept: by default all but five are reopened for each query.
    """
    if not url.startswith(_POSTGRES):
        return {"db_url": url}
    return {
        "db_url": url.replace(_POSTGRES, "postgresql+psycopg2://", 1),
        "engine_kwargs": {"pool_size": _CONNECTIONS, "max_overflow": 0},
    }


def check_database(url: str) -> None:
    """Connect to a PostgreSQL database once, and raise an error if that fails."""
    if not url.startswith(_POSTGRES):
        return
    engine = sa.create_engine(database_config(url)["db_url"])
    try:
        engine.connect().close()
    except sa.exc.OperationalError as error:
        why = " ".join(str(error.orig).split())
        msg = f"the database can't be reached: {why}"
        raise ElsewhereError(
            msg, hint="check `database` in farm.toml, and that the server is running"
        ) from error
    finally:
        engine.dispose()
