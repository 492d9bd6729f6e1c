"""Queries of Buildbot's tables about plans: each is one query for any number of jobs."""

import json
from collections.abc import Collection, Iterable

import sqlalchemy as sa
from buildbot.db.model import Model
from buildbot.process.results import CANCELLED, FAILURE, SUCCESS, WARNINGS

from torchyard_farm.master.builds import FINGERPRINT
from torchyard_farm.master.db.attempts_db import VERDICT
from torchyard_farm.scheduling.attempts import AttemptVerdict
from torchyard_farm.scheduling.plan_tracker import JobStatus
from torchyard_farm.web.history import PastBuild
from torchyard_farm.web.progress import JobAttempt, Outcome

_RUN = "run"
"""The step that runs a job."""

GOOD = (SUCCESS, WARNINGS)
_FAR, _LATELY = 2000, 5000
"""Maximum number of past builds, and of recent results and inputs, to read."""

_CONCLUSIONS: dict[str | None, Outcome] = {
    AttemptVerdict.GIVEN_UP: "given up",
    AttemptVerdict.QUARANTINED: "quarantined",
}


def belongs_to_plan(model: type[Model], plan: str) -> sa.ColumnElement[bool]:
    """Return the condition for the buildsets of a plan: their external names are PLAN/NUMBER."""
    return model.buildsets.c.external_idstring.startswith(f"{plan}/", autoescape=True)


def read_job_statuses(
    connection: sa.Connection, model: type[Model], plan: str
) -> tuple[list[JobStatus], list[int]]:
    """Return the status of a plan's jobs, and buildsets that Buildbot has left open.

    Buildbot completes a build, its request and its buildset one after the other. If it is killed
    after the request, the buildset stays open forever.
    """
    sets, requests = model.buildsets, model.buildrequests
    query = (
        sa.select(
            sets.c.id,
            sets.c.external_idstring,
            sets.c.complete,
            requests.c.complete,
            requests.c.results,
        )
        .join(requests, requests.c.buildsetid == sets.c.id)
        .where(belongs_to_plan(model, plan))
        .order_by(sets.c.id)
    )
    statuses, torn = [], []
    for number, name, closed, over, results in connection.execute(query):
        statuses.append(JobStatus(int(name.rpartition("/")[2]), bool(over), results in GOOD))
        if over and not closed:
            torn.append(number)
    return statuses, torn


def read_open_requests(
    connection: sa.Connection, model: type[Model], plan: str
) -> list[tuple[int, bool]]:
    """Return a plan's unfinished requests, and whether each is claimed."""
    sets, requests, claims = model.buildsets, model.buildrequests, model.buildrequest_claims
    query = (
        sa.select(requests.c.id, claims.c.brid)
        .join(sets, sets.c.id == requests.c.buildsetid)
        .outerjoin(claims, claims.c.brid == requests.c.id)
        .where(requests.c.complete == 0, belongs_to_plan(model, plan))
    )
    return [(number, claim is not None) for number, claim in connection.execute(query)]


def read_unfinished(
    connection: sa.Connection, model: type[Model], names: Collection[str]
) -> set[str]:
    """Return the submitted, unfinished jobs (PLAN/NUMBER)."""
    sets, requests = model.buildsets, model.buildrequests
    query = (
        sa.select(sets.c.external_idstring)
        .join(requests, requests.c.buildsetid == sets.c.id)
        .where(requests.c.complete == 0, sets.c.external_idstring.in_(names))
    )
    return set(connection.execute(query).scalars())


def _outcome(results: int, verdict: str | None) -> Outcome:
    if results in GOOD:
        return "good"
    if results == CANCELLED:
        return "cancelled"
    return _CONCLUSIONS.get(verdict and json.loads(verdict), "bad")


def read_attempts(connection: sa.Connection, model: type[Model], plan: str) -> list[JobAttempt]:
    """Return the last attempt of each submitted job of a plan."""
    sets, requests, builds = model.buildsets, model.buildrequests, model.builds
    steps, workers, properties = model.steps, model.workers, model.build_properties
    query = (
        sa.select(
            requests.c.id,
            sets.c.external_idstring,
            requests.c.complete,
            requests.c.results,
            requests.c.complete_at,
            builds.c.builderid,
            builds.c.number,
            builds.c.started_at,
            builds.c.complete_at,
            workers.c.name,
            steps.c.state_string,
            properties.c.value,
        )
        .select_from(sets)
        .join(requests, requests.c.buildsetid == sets.c.id)
        .outerjoin(builds, builds.c.buildrequestid == requests.c.id)
        .outerjoin(workers, workers.c.id == builds.c.workerid)
        .outerjoin(steps, (steps.c.buildid == builds.c.id) & (steps.c.name == _RUN))
        .outerjoin(
            properties, (properties.c.buildid == builds.c.id) & (properties.c.name == VERDICT)
        )
        .where(belongs_to_plan(model, plan))
        .order_by(requests.c.id, builds.c.id)
    )
    last: dict[int, JobAttempt] = {}
    for row in connection.execute(query):
        request, name, over, results, closed, builder, number, began, ended, *rest = row
        worker, text, verdict = rest
        last[request] = JobAttempt(
            job=int(name.rpartition("/")[2]),
            outcome=_outcome(results, verdict) if over else None,
            builder=builder,
            build=number,
            began=began,
            ended=ended or closed,
            worker=worker or "",
            text=text or "",
        )
    return list(last.values())


def read_recent_inputs(
    connection: sa.Connection, model: type[Model]
) -> list[tuple[str, list[str]]]:
    """Return recent inputs and results (fingerprints) per worker, oldest first."""
    builds, requests, workers = model.builds, model.buildrequests, model.workers
    given = model.buildset_properties
    query = (
        sa.select(workers.c.name, given.c.property_value)
        .select_from(builds)
        .join(requests, requests.c.id == builds.c.buildrequestid)
        .join(workers, workers.c.id == builds.c.workerid)
        .join(given, given.c.buildsetid == requests.c.buildsetid)
        .where(given.c.property_name.in_((FINGERPRINT, "inputs")))
        .order_by(builds.c.id.desc())
        .limit(_LATELY)
    )
    found = [(worker, json.loads(value)[0]) for worker, value in connection.execute(query)]
    return [(worker, [had] if isinstance(had, str) else list(had)) for worker, had in found[::-1]]


def read_past_builds(
    connection: sa.Connection, model: type[Model], pages: Collection[int]
) -> list[PastBuild]:
    """Return builds that succeeded or failed on these history pages, newest first."""
    if not pages:
        return []
    builds, properties = model.builds, model.build_properties
    query = (
        sa.select(builds.c.builderid, properties.c.value, builds.c.results, builds.c.complete_at)
        .join(properties, properties.c.buildid == builds.c.id)
        .where(
            builds.c.builderid.in_(pages),
            builds.c.results.in_((*GOOD, FAILURE)),
            properties.c.name == "task",
        )
        .order_by(builds.c.id.desc())
        .limit(_FAR)
    )
    return [
        PastBuild(page, json.loads(task).partition(":")[0], results in GOOD, ended)
        for page, task, results, ended in connection.execute(query)
    ]


def read_page_ids(
    connection: sa.Connection, model: type[Model], names: Collection[str]
) -> dict[str, int]:
    """Return the numbers of existing history pages by name."""
    builders = model.builders
    query = sa.select(builders.c.name, builders.c.id).where(builders.c.name.in_(names))
    return {row.name: row.id for row in connection.execute(query)} if names else {}


def count_jobs(
    connection: sa.Connection, model: type[Model], plans: Iterable[str]
) -> dict[str, tuple[int, int, int]]:
    """Return how many jobs of each plan succeeded, failed, and are pending or running."""
    sets, requests = model.buildsets, model.buildrequests
    names = {plan: belongs_to_plan(model, plan) for plan in plans}
    if not names:
        return {}
    plan_of = sa.case(*((found, plan) for plan, found in names.items()))
    good = sa.case((requests.c.results.in_(GOOD), 1), else_=0)
    jobs = (
        sa.select(
            plan_of.label("plan"),
            sa.func.max(good * requests.c.complete).label("good"),
            sa.func.min(requests.c.complete).label("over"),
        )
        .select_from(sets)
        .join(requests, requests.c.buildsetid == sets.c.id)
        .where(sa.or_(*names.values()))
        .group_by(plan_of, sets.c.external_idstring)
        .subquery()
    )
    query = sa.select(jobs.c.plan, jobs.c.good, jobs.c.over, sa.func.count()).group_by(
        jobs.c.plan, jobs.c.good, jobs.c.over
    )
    found: dict[str, list[int]] = {plan: [0, 0, 0] for plan in names}
    for plan, is_good, is_over, count in connection.execute(query):
        found[plan][0 if is_good else 1 if is_over else 2] += count
    return {plan: (good, bad, out) for plan, (good, bad, out) in found.items()}
