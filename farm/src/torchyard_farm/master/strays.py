"""Jobs that a machine goes on with although their connection was lost.

If such a job is still wanted, it did not take its machine down. If it is not, as somebody has
cancelled it meanwhile, or another machine was quicker, it is ended.
"""

import json
from collections.abc import Generator, Iterable
from typing import Any

import sqlalchemy as sa
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.jobs.attempts import Verdict
from torchyard_farm.master.tries import MACHINE, VERDICT, Tries

FINGERPRINT = "fingerprint"


@defer.inlineCallbacks
def look_after(
    worker: Any, connection: Any, ages: dict[str, float], tries: Tries
) -> Generator[Any, Any, None]:
    """Do what is to be done about the jobs that a worker says its machine runs, since when."""
    master, machine = worker.master, worker.properties.getProperty(MACHINE)
    if ages and tries.lost_on(machine):
        now = master.reactor.seconds()
        began = {name: now - age for name, age in ages.items()}
        yield _note_return(master, machine, began, tries)
    followed = [
        build.getProperty(FINGERPRINT)
        for builder in master.botmaster.builders.values()
        for build in builder.building
    ]
    strays = [name for name in ages if not _is_among(name, followed)]
    if not strays:
        return
    wanted = yield master.db.pool.do(_read_wanted, master.db.model)
    for name in strays:
        if not _is_among(name, wanted):
            log.msg(f"nobody wants {name} any more, which runs on {machine}: it is ended")
            yield connection.mind.callRemote("end", name)


def _is_among(name: str, fingerprints: Iterable[str | None]) -> bool:
    """Whether a job that is named by its stage and a part of its fingerprint is one of these."""
    digits = name.rpartition("-")[2]
    return any(one is not None and one.startswith(digits) for one in fingerprints)


@defer.inlineCallbacks
def _note_return(
    master: Any, machine: str, began: dict[str, float], tries: Tries
) -> Generator[Any, Any, None]:
    """Note what a machine still has; one that has begun a job anew had lost it."""
    lost = yield master.db.pool.do(_read_lost, master.db.model, machine)
    for build, request, ended, fingerprint in lost:
        if any(_is_among(name, [fingerprint]) and when <= ended for name, when in began.items()):
            log.msg(f"{machine} is back with the job of build {build}")
            yield master.data.updates.setBuildProperty(build, VERDICT, Verdict.CUT.value, "run")
            tries.remember(request, (yield tries.read(master, request)))


def _read_wanted(connection: Any, model: Any) -> list[str]:
    """The fingerprints of all jobs that were sent and are not over."""
    properties, requests = model.buildset_properties, model.buildrequests
    query = (
        sa.select(properties.c.property_value)
        .join(requests, requests.c.buildsetid == properties.c.buildsetid)
        .where(requests.c.complete == 0, properties.c.property_name == FINGERPRINT)
    )
    return [json.loads(value)[0] for (value,) in connection.execute(query)]


def _read_lost(connection: Any, model: Any, machine: str) -> list[tuple[int, int, int, str]]:
    """The builds that were lost on a machine, and are to be tried again."""
    builds, requests = model.builds, model.buildrequests
    wanted = {VERDICT: Verdict.LOST.value, MACHINE: machine}
    fingerprint = model.build_properties.alias()
    query = (
        sa.select(builds.c.id, builds.c.buildrequestid, builds.c.complete_at, fingerprint.c.value)
        .join(requests, requests.c.id == builds.c.buildrequestid)
        .join(fingerprint, fingerprint.c.buildid == builds.c.id)
        .where(
            requests.c.complete == 0,
            builds.c.complete_at.is_not(None),
            fingerprint.c.name == FINGERPRINT,
        )
    )
    for name, value in wanted.items():
        table = model.build_properties.alias()
        query = query.join(table, table.c.buildid == builds.c.id).where(
            table.c.name == name, table.c.value == json.dumps(value)
        )
    return [(*row[:3], json.loads(row[3])) for row in connection.execute(query)]
