from collections.abc import Callable, Sequence

from buildbot.process.builder import Builder
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.factory import BuildFactory
from buildbot.process.workerforbuilder import AbstractWorkerForBuilder
from twisted.internet.defer import Deferred

class BuilderConfig:
    workernames: list[str]
    def __init__(
        self,
        *,
        name: str,
        workernames: Sequence[str],
        factory: BuildFactory,
        canStartBuild: Callable[[Builder, AbstractWorkerForBuilder, BuildRequest], Deferred[bool]]
        | None = None,
    ) -> None: ...
