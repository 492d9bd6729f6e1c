"""Periodic parts of a master."""

from collections.abc import Callable

from buildbot.master import BuildMaster
from buildbot.util.service import BuildbotService
from twisted.internet import defer, task

from torchyard_farm.twisted_tools import start_loop


class Polling:
    """A mix-in with one loop."""

    master: BuildMaster
    _loop: task.LoopingCall | None = None

    @property
    def is_polling(self) -> bool:
        return self._loop is not None

    def start_polling(self, call: Callable[[], object], interval: float, *, now: bool) -> None:
        """Call a function every `interval` seconds; replace a running loop."""
        self.stop_polling()
        self._loop = start_loop(call, interval, self.master.reactor, now=now)

    def stop_polling(self) -> None:
        if self._loop is not None:
            self._loop.stop()
            self._loop = None


class PollingService(Polling, BuildbotService):
    """A service whose loop restarts when it is reconfigured, and ends when it stops."""

    def stopService(self) -> defer.Deferred[None]:
        self.stop_polling()
        return super().stopService()
