from collections.abc import Callable
from typing import Any

from buildbot.master import BuildMaster
from buildbot.process.builder import Builder
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.workerforbuilder import AbstractWorkerForBuilder
from twisted.internet.defer import Deferred

class BuildChooserBase:
    bldr: Builder
    master: BuildMaster
    breqCache: dict[int, BuildRequest]
    def __init__(self, bldr: Builder, master: BuildMaster) -> None: ...
    def popNextBuild(
        self,
    ) -> Deferred[tuple[AbstractWorkerForBuilder | None, BuildRequest | None]]: ...
    def _fetchUnclaimedBrdicts(self) -> Deferred[list[Any]]: ...
    def _getBuildRequestForBrdict(self, brdict: Any) -> Deferred[BuildRequest | None]: ...
    def _removeBuildRequest(self, breq: BuildRequest) -> None: ...

class BasicBuildChooser(BuildChooserBase): ...

class BuildRequestDistributor:
    BuildChooser: Callable[[Builder, BuildMaster], BuildChooserBase]
