"""Jobs that a machine continues although their connection was lost.

If such a job is still wanted, it did not take its machine down. If it is not, as it was cancelled
meanwhile or another machine was faster, it is ended.
"""

import json
from collections.abc import Mapping

import sqlalchemy as sa
from buildbot.db.model import Model
from buildbot.master import BuildMaster
from buildbot.worker.protocols.base import Connection
from twisted.python import log

from torchyard_farm.master.builds import FINGERPRINT, MACHINE
from torchyard_farm.master.db.attempts_db import VERDICT, AttemptHistory
from torchyard_farm.scheduling.attempts import AttemptVerdict
from torchyard_farm.scheduling.worker_status import RunningJob


async def record_returned_jobs(
    master: BuildMaster, machine: str, jobs: Mapping[str, RunningJob], attempts: AttemptHistory
) -> None:
    """Change the verdict of lost attempts whose jobs still run; a restarted job was lost."""
    if not jobs or not attempts.may_be_lost_on(machine):
        return
    now = master.reactor.seconds()
    lost = await master.db.pool.do(_read_lost, master.db.model, machine)
    for build, request, ended, fingerprint in lost:
        if fingerprint in jobs and now - jobs[fingerprint].age <= ended:
            log.msg(f"{machine} is back with the job of build {build}")
            verdict = AttemptVerdict.CUT.value
            await master.data.updates.setBuildProperty(build, VERDICT, verdict, "run")
            attempts.remember(request, await attempts.read(master, request))


async def end_unwanted_jobs(
    master: BuildMaster, machine: str, connection: Connection, orphans: Mapping[str, RunningJob]
) -> None:
    """End those orphaned jobs of a machine that no unfinished request is for."""
    if not orphans:
        return
    wanted = await master.db.pool.do(_read_wanted, master.db.model)
    for fingerprint, job in orphans.items():
        if fingerprint not in wanted and connection.mind is not None:
            log.msg(f"{job.name}, which runs on {machine}, is not wanted any more: it is ended")
            await connection.mind.callRemote("end", job.name)


def _read_wanted(connection: sa.Connection, model: type[Model]) -> set[str]:
    """Read the fingerprints of all jobs that were submitted and are not finished."""
    properties, requests = model.buildset_properties, model.buildrequests
    query = (
        sa.select(properties.c.property_value)
        .join(requests, requests.c.buildsetid == properties.c.buildsetid)
        .where(requests.c.complete == 0, properties.c.property_name == FINGERPRINT)
    )
    return {json.loads(value)[0] for (value,) in connection.execute(query)}


def _read_lost(
    connection: sa.Connection, model: type[Model], machine: str
) -> list[tuple[int, int, int, str]]:
    """Read the builds that were lost on a machine and will be retried."""
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
    return [
        (build, request, ended, json.loads(value))
        for build, request, ended, value in connection.execute(query)
    ]
