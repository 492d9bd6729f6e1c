from collections.abc import Callable
from typing import Protocol

from buildbot.data.connector import DataConnector
from buildbot.db.connector import DBConnector
from buildbot.mq.base import MQBase
from buildbot.process.botmaster import BotMaster
from buildbot.util.service import BuildbotServiceManager
from buildbot.worker.manager import WorkerManager
from twisted.internet.base import DelayedCall

class _Reactor(Protocol):
    def seconds(self) -> float: ...
    def callLater(self, delay: float, call: Callable[[], object], /) -> DelayedCall: ...

class _MasterConfig:
    buildbotURL: str

class BuildMaster:
    basedir: str
    masterid: int
    reactor: _Reactor
    config: _MasterConfig
    db: DBConnector
    data: DataConnector
    mq: MQBase
    botmaster: BotMaster
    workers: WorkerManager
    service_manager: BuildbotServiceManager
