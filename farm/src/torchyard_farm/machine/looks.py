"""What a worker tells its master of the machine that it is on."""

from pathlib import Path
from typing import Any

import msgspec
from twisted.internet.threads import deferToThread
from twisted.python import log

from torchyard.host.memory import read_memory
from torchyard.run.here import disk_here, jobs_here
from torchyard_farm.jobs.booking import Look, booked_for
from torchyard_farm.jobs.looking import LOOK, WORK


def tell_of(bot: Any, folder: Path) -> None:
    """Let an agent tell of the machine; Buildbot calls whatever is named `remote_…`."""
    usual = bot.remote_getWorkerInfo

    def look() -> Any:
        return deferToThread(look_at, folder).addErrback(_unknown)

    def introduce() -> Any:
        return look().addCallback(lambda told: usual() | {LOOK: told})

    bot.remote_look = look
    bot.remote_getWorkerInfo = introduce


def look_at(folder: Path) -> str:
    """Look at the machine that a worker's directory is on."""
    work = folder / WORK
    jobs = {
        task.fingerprint: booked_for(task.needs.memory, task.needs.disk) for task in jobs_here(work)
    }
    look = Look(memory=read_memory().total, disk=disk_here(work), jobs=jobs)
    return msgspec.json.encode(look).decode()


def _unknown(why: Any) -> str:
    log.err(why, "this machine can't be looked at")
    return ""
