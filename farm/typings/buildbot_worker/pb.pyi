from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import BaseProtocol
from twisted.python.failure import Failure

class WorkerForBuilderPb:
    basedir: str
    bot: BotPb
    def setBuilddir(self, builddir: str) -> None: ...

class BotPb:
    WorkerForBuilder: type[WorkerForBuilderPb]
    basedir: str
    remote_setBuilderList: Callable[
        [list[tuple[str, str]]], Deferred[dict[str, WorkerForBuilderPb]]
    ]
    remote_look: Callable[[], Deferred[str]]
    remote_end: Callable[[str], None]
    remote_getWorkerInfo: Callable[[], Any]

class BotFactory:
    perspective: Any
    protocol: type[BaseProtocol]
    gotPerspective: Callable[[Any], None]
    failedToGetPerspective: Callable[[Failure, Any], object]
