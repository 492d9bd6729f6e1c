"""Queries of Buildbot's tables."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from buildbot.db.model import Model

from farm.tests.tables import CANCELLED, FAILURE, RETRY, SUCCESS, Tables, tables_in_memory
from torchyard_farm.master.db.plan_tables import (
    count_jobs,
    read_attempts,
    read_job_statuses,
    read_open_requests,
    read_page_ids,
    read_past_builds,
    read_recent_inputs,
)
from torchyard_farm.scheduling.plan_tracker import JobStatus
from torchyard_farm.web.history import PastBuild
from torchyard_farm.web.progress import JobAttempt


@pytest.fixture
def tables() -> Iterator[Tables]:
    with tables_in_memory() as tables:
        yield tables


def sent(tables: Tables, plan: str = "plan") -> list[JobAttempt]:
    return read_attempts(tables.connection, Model, plan)


def test_a_job_that_waits_has_nothing_to_look_at(tables: Tables) -> None:
    tables.send("plan/3")
    assert sent(tables) == [JobAttempt(3, None)]


def test_the_last_try_counts(tables: Tables) -> None:
    request = tables.send("plan/3")
    tables.build(request, RETRY, "again")
    assert sent(tables) == [JobAttempt(3, None, 7, 1, 10, 60, "w1", "why")]
    tables.build(request)
    assert sent(tables) == [JobAttempt(3, None, 7, 2, 10, None, "w1", "why")]


@pytest.mark.parametrize(
    ("results", "verdict", "outcome"),
    [
        (SUCCESS, "good", "good"),
        (FAILURE, "bad", "bad"),
        (FAILURE, "given up", "given up"),
        (FAILURE, "quarantined", "quarantined"),
        (FAILURE, "", "bad"),
        (CANCELLED, "ended", "cancelled"),
    ],
)
def test_the_end_of_a_job(tables: Tables, results: int, verdict: str, outcome: str) -> None:
    tables.build(tables.send("plan/0", results), results, verdict)
    ((job, told, *_),) = sent(tables)
    assert (job, told) == (0, outcome)


def test_a_job_that_was_never_begun_ended_with_its_request(tables: Tables) -> None:
    tables.send("plan/0", CANCELLED)
    assert sent(tables) == [JobAttempt(0, "cancelled", ended=99)]


def test_plans_with_similar_names_are_told_apart(tables: Tables) -> None:
    for name in ("a_b/1", "axb/2", "a_b-2/3", "other a_b/4"):
        tables.send(name, SUCCESS)
    assert [one.job for one in sent(tables, "a_b")] == [1]
    assert count_jobs(tables.connection, Model, ["a_b", "axb", "none"]) == {
        "a_b": (1, 0, 0),
        "axb": (1, 0, 0),
        "none": (0, 0, 0),
    }


def test_each_job_is_counted_once(tables: Tables) -> None:
    for name, results in [
        ("plan/0", FAILURE),
        ("plan/0", SUCCESS),  # rebuilt, and good
        ("plan/1", FAILURE),
        ("plan/1", None),  # rebuilt, and out
        ("plan/2", FAILURE),
        ("plan/2", FAILURE),
        ("plan/3", None),
    ]:
        tables.send(name, results)
    assert count_jobs(tables.connection, Model, ["plan"]) == {"plan": (1, 1, 2)}
    assert count_jobs(tables.connection, Model, []) == {}


def test_histories_are_found_by_name(tables: Tables) -> None:
    assert read_page_ids(tables.connection, Model, {"demo/cell", "demo"}) == {"demo/cell": 7}
    assert read_page_ids(tables.connection, Model, set()) == {}


def test_the_past_of_a_cell_begins_with_the_newest(tables: Tables) -> None:
    for results in (SUCCESS, FAILURE, RETRY, None):
        tables.build(tables.send("plan/0", results), results)
    assert read_past_builds(tables.connection, Model, {7}) == [
        PastBuild(7, "check", good=False, ended=60),
        PastBuild(7, "check", good=True, ended=60),
    ]
    assert read_past_builds(tables.connection, Model, {8}) == []
    assert read_past_builds(tables.connection, Model, set()) == []


def test_there_is_one_question_however_many_jobs_there_are(tables: Tables) -> None:
    for number in range(100):
        tables.build(tables.send(f"plan/{number}", SUCCESS), SUCCESS, "good")
    asked: list[str] = []
    sa.event.listen(
        tables.connection, "before_cursor_execute", lambda *args: asked.append(str(args[2]))
    )
    assert len(sent(tables)) == 100
    assert count_jobs(tables.connection, Model, ["plan", "other"])["plan"] == (100, 0, 0)
    assert len(asked) == 2


def test_a_buildset_that_was_left_open_is_found(tables: Tables) -> None:
    """A master was killed after it had completed the request of the second job."""
    tables.send("plan_1/0", SUCCESS)
    torn = tables.send("plan_1/1", FAILURE)
    tables.send("plan_1/2")
    tables.send("planX1/3")
    this = Model.buildsets.c.id == torn
    tables.connection.execute(sa.update(Model.buildsets).where(this).values(complete=0))
    told = [JobStatus(0, over=True, good=True), JobStatus(1, over=True, good=False)]
    told.append(JobStatus(2, over=False, good=False))
    assert read_job_statuses(tables.connection, Model, "plan_1") == (told, [torn])


def test_what_is_not_over_waits_or_is_with_a_worker(tables: Tables) -> None:
    tables.send("plan/0", SUCCESS)
    waits, runs, _ = (tables.send(name) for name in ("plan/1", "plan/2", "other/1"))
    tables.claim(runs)
    found = read_open_requests(tables.connection, Model, "plan")
    assert sorted(found) == [(waits, False), (runs, True)]


def test_what_agents_had_in_their_hands_the_last_at_last(tables: Tables) -> None:
    for number in (1, 2):
        request = tables.send(f"plan/{number}", SUCCESS)
        tables.give(request, fingerprint=f"f{number}", inputs={f"a{number}": 8, "b": 2}, job=number)
        tables.build(request, SUCCESS)
    tables.give(tables.send("plan/3"), fingerprint="f3")
    found = read_recent_inputs(tables.connection, Model)
    assert {agent for agent, _ in found} == {"w1"}
    had = [sorted(names) for _, names in found]
    assert sorted(had[:2]) == [["a1", "b"], ["f1"]]
    assert sorted(had[2:]) == [["a2", "b"], ["f2"]]
