from buildbot.config.builder import BuilderConfig
from buildbot.master import BuildMaster
from buildbot.process.botmaster import BotMaster
from buildbot.process.build import Build
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.workerforbuilder import AbstractWorkerForBuilder
from twisted.internet.defer import Deferred

class Builder:
    name: str
    master: BuildMaster
    botmaster: BotMaster
    building: list[Build]
    workers: list[AbstractWorkerForBuilder]
    config: BuilderConfig
    def maybeStartBuild(
        self, workerforbuilder: AbstractWorkerForBuilder, breqs: list[BuildRequest]
    ) -> Deferred[bool]: ...
    def getBuilderId(self) -> Deferred[int]: ...
    def getAvailableWorkers(self) -> list[AbstractWorkerForBuilder]: ...
    def canStartBuild(
        self, workerforbuilder: AbstractWorkerForBuilder, buildrequest: BuildRequest
    ) -> Deferred[bool]: ...
