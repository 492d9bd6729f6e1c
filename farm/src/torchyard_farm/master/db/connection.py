"""The address of Buildbot's database, and whether it can be reached."""

from typing import Any

import sqlalchemy as sa

from torchyard.errors import ElsewhereError

_POSTGRES = "postgresql://"
_CONNECTIONS = 8


def database_config(url: str) -> dict[str, Any]:
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


def check_database(url: str) -> None:
    """Ask a PostgreSQL whether it is there, and lets us in."""
    if not url.startswith(_POSTGRES):
        return
    engine = sa.create_engine(database_config(url)["db_url"])
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
