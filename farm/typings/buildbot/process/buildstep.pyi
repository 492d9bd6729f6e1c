from collections.abc import Mapping, Sequence
from typing import Any

from buildbot.master import BuildMaster
from buildbot.process.build import Build
from buildbot.process.log import Log
from buildbot.process.properties import PropertiesMixin
from buildbot.process.remotecommand import RemoteCommand, RemoteShellCommand
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

class _BuildStepFactory: ...

def get_factory_from_step_or_factory(step: BuildStep) -> _BuildStepFactory: ...

class BuildStep(PropertiesMixin):
    name: str
    build: Build
    master: BuildMaster
    stepid: int | None
    stopped: bool
    descriptionDone: str | None
    haltOnFailure: bool
    flunkOnFailure: bool
    alwaysRun: bool
    updateBuildSummaryPolicy: list[int]
    def __init__(self, **kwargs: Any) -> None: ...
    def run(self) -> Deferred[int]: ...
    def interrupt(self, reason: str | Failure) -> Deferred[None]: ...
    def updateSummary(self) -> None: ...
    def getCurrentSummary(self) -> dict[str, str]: ...
    def getResultSummary(self) -> dict[str, str]: ...
    def addLog(self, name: str) -> Deferred[Log]: ...
    def addURL(self, name: str, url: str) -> Deferred[None]: ...
    def runCommand(self, command: RemoteCommand) -> Deferred[int]: ...

class ShellMixin:
    def setupShellMixin(self, constructorArgs: Mapping[str, Any]) -> dict[str, Any]: ...
    def makeRemoteShellCommand(
        self,
        collectStdout: bool = False,
        collectStderr: bool = False,
        stdioLogName: str = "stdio",
        *,
        command: Sequence[str],
    ) -> Deferred[RemoteShellCommand]: ...
