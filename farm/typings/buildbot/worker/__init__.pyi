from buildbot.process.build import Build
from buildbot.process.properties import Properties
from buildbot.util.service import BuildbotService
from buildbot.worker.protocols.base import Connection
from twisted.internet.defer import Deferred

class AbstractWorker(BuildbotService):
    workerid: int
    properties: Properties
    info: Properties
    conn: Connection | None
    def attached(self, conn: Connection) -> Deferred[None]: ...
    def detached(self) -> Deferred[None]: ...

class AbstractLatentWorker(AbstractWorker):
    def start_instance(self, build: Build) -> Deferred[bool]: ...
    def stop_instance(self, fast: bool = False) -> Deferred[bool]: ...

class Worker(AbstractWorker): ...
class LocalWorker(Worker): ...
