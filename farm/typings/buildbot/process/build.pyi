from buildbot.master import BuildMaster
from buildbot.process.builder import Builder
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.buildstep import BuildStep, _BuildStepFactory
from buildbot.process.properties import PropertiesMixin
from buildbot.process.workerforbuilder import AbstractWorkerForBuilder
from buildbot.worker.protocols.base import Connection
from twisted.internet.defer import Deferred

class Build(PropertiesMixin):
    VIRTUAL_BUILDERNAME_PROP: str
    master: BuildMaster
    requests: list[BuildRequest]
    builder: Builder
    buildid: int | None
    results: int | None
    stopped: bool
    conn: Connection | None
    workerforbuilder: AbstractWorkerForBuilder
    _preparation_step: BuildStep | None
    def __init__(self, requests: list[BuildRequest], builder: Builder) -> None: ...
    def startBuild(self, workerforbuilder: AbstractWorkerForBuilder) -> Deferred[None]: ...
    def buildFinished(self, text: list[str], results: int) -> Deferred[None]: ...
    def getBuilderId(self) -> Deferred[int]: ...
    def setupWorkerProperties(self, workerforbuilder: AbstractWorkerForBuilder) -> None: ...
    def addStepsAfterCurrentStep(self, step_factories: list[_BuildStepFactory]) -> None: ...
    def _setup_locks(self) -> Deferred[None]: ...
