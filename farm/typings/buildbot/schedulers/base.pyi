from collections.abc import Sequence
from typing import Any

from buildbot.process.properties import Properties
from buildbot.util.service import BuildbotService
from twisted.internet.defer import Deferred

class ReconfigurableBaseScheduler(BuildbotService):
    enabled: bool
    _objectid: int | None
    def activate(self) -> Deferred[None]: ...
    def deactivate(self) -> Deferred[None]: ...
    def getState(self, name: str, default: object = ...) -> Deferred[Any]: ...
    def setState(self, name: str, value: object) -> Deferred[None]: ...
    def addBuildsetForSourceStamps(
        self,
        *,
        sourcestamps: Sequence[dict[str, str | None]],
        reason: str,
        waited_for: bool,
        properties: Properties,
    ) -> Deferred[tuple[int, dict[int, int]]]: ...
