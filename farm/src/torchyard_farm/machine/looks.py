"""What a worker tells its master of the machine that it is on."""

from pathlib import Path
from typing import Any

from twisted.internet.threads import deferToThread
from twisted.python import log

from torchyard_farm.jobs.looking import LOOK, look_at


def tell_of(bot: Any, folder: Path) -> None:
    """Let an agent tell of the machine; Buildbot calls whatever is named `remote_…`."""
    usual = bot.remote_getWorkerInfo

    def look() -> Any:
        return deferToThread(look_at, folder).addErrback(_unknown)

    def introduce() -> Any:
        return look().addCallback(lambda told: usual() | {LOOK: told})

    bot.remote_look = look
    bot.remote_getWorkerInfo = introduce


def _unknown(why: Any) -> str:
    log.err(why, "this machine can't be looked at")
    return ""
