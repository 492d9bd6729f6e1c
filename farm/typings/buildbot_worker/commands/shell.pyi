from typing import Any, Protocol

from twisted.internet.defer import Deferred

class _ProtocolCommand(Protocol):
    worker_basedir: str
    def send_update(self, data: list[tuple[str, object]]) -> None: ...

class WorkerShellCommand:
    args: dict[str, Any]
    protocol_command: _ProtocolCommand
    def start(self) -> Deferred[None]: ...
