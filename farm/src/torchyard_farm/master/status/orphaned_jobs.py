"""Jobs that a machine goes on with although their connection was lost.

If such a job is still wanted, it did not take its machine down. If it is not, as somebody has
cancelled it meanwhile, or another machine was quicker, it is ended.
"""

import json
from collections.abc import Generator, Mapping
from typing import Any

import sqlalchemy as sa
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.builds import FINGERPRINT, MACHINE
from torchyard_farm.master.db.attempts_db import VERDICT, AttemptHistory
from torchyard_farm.scheduling.attempts import AttemptVerdict
from torchyard_farm.scheduling.worker_status import RunningJob

Steps = Generator[Any, Any, None]


@defer.inlineCallbacks
def record_returned_jobs(
    master: Any, machine: str, jobs: Mapping[str, RunningJob], tries: AttemptHistory
) -> Steps:
    """Note what a machine still has; one that has begun a job anew had lost it."""
    if not jobs or not tries.lost_on(machine):
        return
    now = master.reactor.seconds()
    lost = yield master.db.pool.do(_read_lost, master.db.model, machine)
    for build, request, ended, fingerprint in lost:
        if fingerprint in jobs and now - jobs[fingerprint].age <= ended:
            log.msg(f"{machine} is back with the job of build {build}")
            yield master.data.updates.setBuildProperty(
                build, VERDICT, AttemptVerdict.CUT.value, "run"
            )
            tries.remember(request, (yield tries.read(master, request)))


@defer.inlineCallbacks
def end_unwanted_jobs(
    master: Any, machine: str, connection: Any, strays: Mapping[str, RunningJob]
) -> Steps:
    """Of the jobs of a machine that nobody follows, end those that nobody wants, either."""
    if not strays:
        return
    wanted = yield master.db.pool.do(_read_wanted, master.db.model)
    for fingerprint, job in strays.items():
        if fingerprint not in wanted:
            log.msg(f"nobody wants {job.name} any more, which runs on {machine}: it is ended")
            yield connection.mind.callRemote("end", job.name)


def _read_wanted(connection: Any, model: Any) -> set[str]:
    """The fingerprints of all jobs that were sent and are not over."""
    properties, requests = model.buildset_properties, model.buildrequests
    query = (
        sa.select(properties.c.property_value)
        .join(requests, requests.c.buildsetid == properties.c.buildsetid)
        .where(requests.c.complete == 0, properties.c.property_name == FINGERPRINT)
    )
    return {json.loads(value)[0] for (value,) in connection.execute(query)}


def _read_lost(connection: Any, model: Any, machine: str) -> list[tuple[int, int, int, str]]:
    """The builds that were lost on a machine, and are to be tried again."""
    builds, requests = model.builds, model.buildrequests
    wanted = {VERDICT: AttemptVerdict.LOST.value, MACHINE: machine}
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
