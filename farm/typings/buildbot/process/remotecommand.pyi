from collections.abc import Callable
from typing import Any

from buildbot.process.buildstep import BuildStep
from buildbot.process.log import Log
from twisted.internet.defer import Deferred

class RemoteCommand:
    args: dict[str, Any]
    rc: int | None
    step: BuildStep
    stdout: str
    stderr: str
    def useLog(self, log_: Log, closeWhenFinished: bool = False) -> None: ...
    def useLogDelayed(
        self,
        logfileName: str,
        activateCallBack: Callable[[RemoteCommand], Deferred[Log]],
        closeWhenFinished: bool = False,
    ) -> None: ...
    async def add_stdout_lines(self, data: str, is_flushed: bool) -> None: ...
    async def addToLog(self, logname: str, data: str) -> None: ...
    def results(self) -> int: ...
    def didFail(self) -> bool: ...

class RemoteShellCommand(RemoteCommand):
    def __init__(self, **options: Any) -> None: ...
