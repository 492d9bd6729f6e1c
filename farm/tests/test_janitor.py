"""Old finished jobs are deleted, and nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from buildbot.db.model import Model

from farm.tests.factories import made_plan
from farm.tests.test_plan_sync import Database, done
from torchyard_farm.master.plans.janitor import Janitor, forget_jobs, known_plans
from torchyard_farm.scheduling.plans import Plans

pytestmark = pytest.mark.filterwarnings("ignore:twisted.internet.ssl:DeprecationWarning")

LONG_AGO, LIMIT, LATELY = 1_000, 2_000, 3_000


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[sa.Connection]:
    engine = sa.create_engine(f"sqlite:///{tmp_path}/state.sqlite")
    Model.metadata.create_all(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def add_job(tables: sa.Connection, name: str, ended: int | None) -> None:
    """Add a job with all its rows, down to a line of its log."""
    row = {"submitted_at": 0, "complete": int(ended is not None), "complete_at": ended}
    names = {"external_idstring": name, "reason": "", "results": 0}
    number = tables.execute(sa.insert(Model.buildsets).values(**row, **names)).lastrowid
    tables.execute(sa.insert(Model.builders).values(id=number, name=name, name_hash=name))
    for table, values in (
        (
            Model.buildset_properties,
            {"buildsetid": number, "property_name": "", "property_value": ""},
        ),
        (Model.buildrequests, {"id": number, "buildsetid": number, "builderid": number, **row}),
        (Model.buildrequest_claims, {"brid": number, "masterid": 1, "claimed_at": 0}),
        (
            Model.builds,
            {
                "id": number,
                "number": number,
                "builderid": number,
                "buildrequestid": number,
                "masterid": 1,
                "started_at": 0,
                "locks_duration_s": 0,
                "state_string": "",
            },
        ),
        (Model.build_properties, {"buildid": number, "name": "", "value": "", "source": ""}),
        (
            Model.steps,
            {
                "id": number,
                "number": 0,
                "name": "run",
                "buildid": number,
                "state_string": "",
                "urls_json": "[]",
            },
        ),
        (
            Model.logs,
            {
                "id": number,
                "name": "log",
                "slug": "log",
                "stepid": number,
                "complete": 1,
                "num_lines": 1,
                "type": "s",
            },
        ),
        (
            Model.logchunks,
            {"logid": number, "first_line": 0, "last_line": 0, "content": b"", "compressed": 0},
        ),
    ):
        tables.execute(sa.insert(table).values(**values))
    tables.commit()


def left(tables: sa.Connection) -> set[str]:
    column = Model.buildsets.c.external_idstring
    return {row[0] for row in tables.execute(sa.select(column))}


def test_only_what_is_over_since_long_and_needed_by_no_plan_is_forgotten(
    tables: sa.Connection,
) -> None:
    add_job(tables, "old/0", LONG_AGO)
    add_job(tables, "old/1", LATELY)
    add_job(tables, "old/2", None)
    add_job(tables, "open/0", LONG_AGO)
    add_job(tables, "calendar:night@2026", LONG_AGO)
    assert forget_jobs(tables, Model, LIMIT, ["open"]) == 1
    assert left(tables) == {"old/1", "old/2", "open/0", "calendar:night@2026"}
    assert forget_jobs(tables, Model, LIMIT, ["open"]) == 0


def test_nothing_of_a_forgotten_job_is_left(tables: sa.Connection) -> None:
    add_job(tables, "old/0", LONG_AGO)
    add_job(tables, "open/0", LONG_AGO)
    forget_jobs(tables, Model, LIMIT, ["open"])
    for table in (
        *(Model.buildsets, Model.buildset_properties, Model.buildrequests),
        *(Model.buildrequest_claims, Model.builds, Model.build_properties),
        *(Model.steps, Model.logs, Model.logchunks),
    ):
        count = tables.execute(sa.select(sa.func.count()).select_from(table)).scalar()
        assert count == 1, table.name


def test_a_plan_is_known_as_long_as_one_of_its_jobs_is(tables: sa.Connection) -> None:
    add_job(tables, "old_plan/0", LONG_AGO)
    add_job(tables, "other/0", LATELY)
    assert known_plans(tables, Model, ["old_plan", "other", "oldXplan"]) == {"old_plan", "other"}
    forget_jobs(tables, Model, LIMIT, [])
    assert known_plans(tables, Model, ["old_plan", "other"]) == {"other"}


def test_all_masters_forget_a_plan_of_which_nothing_is_left(
    tables: sa.Connection, tmp_path: Path
) -> None:
    database, first, second = Database(tables), Plans(tmp_path / "1"), Plans(tmp_path / "2")
    for name in ("old", "failed", "late"):
        first.add(made_plan({0: []}, name=name))
        os.utime(tmp_path / f"1/plans/{name}.json", (LONG_AGO, LONG_AGO))
    add_job(tables, "old/0", LONG_AGO)
    add_job(tables, "failed/0", LONG_AGO)
    add_job(tables, "late/0", LATELY)
    database.settle(first, second)
    for name in ("old", "late"):
        first.end(name)
    database.settle(first, second)
    database.reactor.advance(LATELY)
    janitor = Janitor(folder=str(tmp_path / "1"), keep=LATELY - LIMIT, shared=True)
    janitor.parent = SimpleNamespace(master=database)
    done(janitor.reconfigService(str(tmp_path / "1"), LATELY - LIMIT, shared=True))
    assert left(tables) == {"old/0", "failed/0", "late/0"}, "others may have open plans"
    done(janitor._clean())
    database.settle(second, first, second)
    assert left(tables) == {"failed/0", "late/0"}
    for master in (first, second):
        assert (master.open(), master.ended()) == (["failed"], ["late"])
