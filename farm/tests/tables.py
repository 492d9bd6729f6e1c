"""Buildbot's tables, in memory and in databases."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import sqlalchemy as sa
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from buildbot.db.model import Model

SUCCESS, FAILURE, RETRY, CANCELLED = 0, 2, 5, 6
ENDED = 60
"""When builds end."""


class Tables:
    """Rows as Buildbot writes them: a master, a worker, a page, and jobs with builds."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.add("masters", id=1, name="m", name_hash="m", active=1, last_active=0)
        self.add("workers", id=1, name="w1", info={})
        self.add("builders", id=7, name="demo/cell", name_hash="c")
        self._requests = self._builds = 0

    def add(self, table: str, **values: object) -> None:
        self.connection.execute(sa.insert(getattr(Model, table)).values(**values))

    def send(self, name: str, results: int | None = None) -> int:
        """Add a submitted job, which is finished if it has a result."""
        self._requests = number = self._requests + 1
        over = {"complete": int(results is not None), "results": results}
        self.add("buildsets", id=number, external_idstring=name, submitted_at=1, **over)
        over["complete_at"] = None if results is None else 99
        self.add("buildrequests", id=number, buildsetid=number, builderid=7, submitted_at=1, **over)
        return number

    def give(self, request: int, **told: object) -> None:
        """Add properties of a job."""
        for name, value in told.items():
            given = {"property_name": name, "property_value": json.dumps([value, "plan"])}
            self.add("buildset_properties", buildsetid=request, **given)

    def claim(self, request: int, master: int = 1) -> None:
        self.add("buildrequest_claims", brid=request, masterid=master, claimed_at=1)

    def build(
        self, request: int, results: int | None = None, verdict: str = "", **facts: str
    ) -> int:
        """Add a build, which is finished if it has a result."""
        self._builds = number = self._builds + 1
        self.add(
            "builds",
            id=number,
            number=number,
            builderid=7,
            buildrequestid=request,
            workerid=1,
            masterid=1,
            started_at=10,
            complete_at=None if results is None else ENDED,
            locks_duration_s=0,
            state_string="failed bindings: why",
            results=results,
        )
        for step, (name, text) in enumerate([("locks_acquire", "locks acquired"), ("run", "why")]):
            place = {"id": 10 * number + step, "number": step, "buildid": number}
            self.add("steps", name=name, state_string=text, urls_json="[]", **place)
        told = {"verdict": verdict, "machine": "w", "task": "check:demo-1.0/cell", **facts}
        for name, value in told.items():
            if value:
                text = json.dumps(value)
                self.add("build_properties", buildid=number, name=name, value=text, source="run")
        return number


@contextmanager
def tables_in_memory() -> Iterator[Tables]:
    engine = sa.create_engine("sqlite://")
    Model.metadata.create_all(engine)
    with engine.begin() as connection:
        yield Tables(connection)
    engine.dispose()


def create_tables(url: str) -> None:
    """Create all tables in an empty database, as `buildbot upgrade-master` does."""
    scripts = ScriptDirectory(str(files("buildbot.db") / "migrations"))
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        Model.metadata.create_all(connection)
        MigrationContext.configure(connection).stamp(scripts, "head")
    engine.dispose()
