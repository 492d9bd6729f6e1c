from collections.abc import Sequence
from typing import Any

from buildbot.data.base import Endpoint
from buildbot.data.masters import Master
from twisted.internet.defer import Deferred

class Updates:
    def addBuildset(
        self,
        *,
        waited_for: bool,
        scheduler: str | None = None,
        sourcestamps: Sequence[int | dict[str, str | None]] | None = None,
        reason: str = "",
        properties: dict[str, tuple[Any, str]] | None = None,
        builderids: Sequence[int] | None = None,
        external_idstring: str | None = None,
        priority: int = 0,
    ) -> Deferred[tuple[int, dict[int, int]]]: ...
    def findBuilderId(self, name: str) -> Deferred[int]: ...
    def finishStep(self, stepid: int, results: int, hidden: bool) -> Deferred[None]: ...
    def maybeBuildsetComplete(self, bsid: int) -> Deferred[None]: ...
    def setBuildProperty(
        self, buildid: int, name: str, value: object, source: str
    ) -> Deferred[None]: ...
    def unclaimBuildRequests(self, brids: Sequence[int]) -> Deferred[None]: ...

class RTypes:
    master: Master

class DataConnector:
    updates: Updates
    rtypes: RTypes
    submodules: Sequence[str]
    def get(self, path: tuple[str | int, ...]) -> Deferred[Any]: ...
    def getEndpoint(self, path: Any) -> tuple[Endpoint, dict[str, Any]]: ...
    def control(
        self, action: str, args: dict[str, str], path: tuple[str, ...]
    ) -> Deferred[Any]: ...
