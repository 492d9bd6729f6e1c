"""What a worker's agent tells the master about its jobs: they outlive agent and connection."""

import re
from pathlib import Path
from typing import Any

from twisted.internet import threads

from torchyard.run.detached import detached_in, end_named
from torchyard_farm.notes import note

_NAME = re.compile(r"[a-z]+-[0-9a-f]+")


def tell_jobs(bot: Any, work: Path) -> None:
    """Let the master ask what runs on this machine, and end what nobody wants any more.

    `bot` is what the master talks to: it may call all that is named `remote_...`.
    """

    def running() -> Any:
        return threads.deferToThread(detached_in, work)

    def end(name: str) -> None:
        if _NAME.fullmatch(name):
            threads.deferToThread(end_named, work, name).addErrback(note)

    bot.remote_running, bot.remote_end = running, end
