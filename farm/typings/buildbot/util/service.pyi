from typing import Any

from buildbot.master import BuildMaster
from twisted.internet.defer import Deferred

class AsyncService:
    parent: Any
    master: BuildMaster
    running: bool
    def stopService(self) -> Deferred[None]: ...

class BuildbotService(AsyncService):
    name: str
    _config_kwargs: dict[str, Any]
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def checkConfig(self, *args: Any, **kwargs: Any) -> Any: ...
    def reconfigService(self, *args: Any, **kwargs: Any) -> Deferred[None]: ...

class BuildbotServiceManager:
    namedServices: dict[str, AsyncService]
