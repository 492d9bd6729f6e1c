"""What a worker's agents tell the master about its jobs: they outlive agents and connections."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet.threads import deferToThread

from torchyard.run.detached import detached_in, end_named
from torchyard_farm.notes import note

_NAME = re.compile(r"[a-z]+-[0-9a-f]+")


class Jobs:
    """The jobs of a machine. Any of its agents may be asked about them, and to end one of them."""

    def __init__(self, work: Path, apart: Callable[..., Any] = deferToThread) -> None:
        self._work = work
        self._apart = apart
        self._ending: set[str] = set()

    def tell(self, bot: Any) -> None:
        """Let the master ask; `bot` is what it talks to, and it calls what is named `remote_…`."""
        bot.remote_running, bot.remote_end = self._running, self._end

    def _running(self) -> Any:
        return self._apart(detached_in, self._work)

    def _end(self, name: str) -> None:
        """End what nobody wants any more; who says so again and again need not wait for it."""
        if _NAME.fullmatch(name) and name not in self._ending:
            self._ending.add(name)
            ended = self._apart(end_named, self._work, name).addErrback(note)
            ended.addBoth(lambda _: self._ending.discard(name))
