"""Time that passes while no master runs."""

import json
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from torchyard_farm.settings.dates import format_moment


def backdate(database: str, name: str, days: int = 7) -> None:
    """Change the database of stopped masters as if a schedule had been configured days ago."""
    then = json.dumps(format_moment(datetime.now(UTC) - timedelta(days=days)))
    engine = sa.create_engine(database.replace("postgresql://", "postgresql+psycopg2://"))
    try:
        with engine.begin() as connection:
            changed = connection.execute(
                sa.text("UPDATE object_state SET value_json = :then WHERE name LIKE :name"),
                {"then": then, "name": f"{name} at %"},
            )
            assert changed.rowcount == 1
    finally:
        engine.dispose()
