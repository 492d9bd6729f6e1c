"""Parts of a master that do something again and again."""

from collections.abc import Callable
from typing import Any

from buildbot.util.service import BuildbotService
from twisted.internet import task

from torchyard_farm.twisted_tools import resilient_loop


class Polling:
    """One loop, for a part of a master."""

    master: Any
    _loop: task.LoopingCall | None = None

    @property
    def is_looping(self) -> bool:
        return self._loop is not None

    def repeat(self, what: Callable[[], Any], interval: float, *, now: bool) -> None:
        """Do something every so many seconds, in place of what was done so far."""
        self.cease()
        self._loop = resilient_loop(what, self.master.reactor)
        self._loop.start(interval, now=now)

    def cease(self) -> None:
        """Do it no more."""
        if self._loop is not None:
            self._loop.stop()
            self._loop = None


class PollingService(Polling, BuildbotService):
    """A service whose loop begins anew with each configuration, and ends with it."""

    def stopService(self) -> Any:
        self.cease()
        return super().stopService()
