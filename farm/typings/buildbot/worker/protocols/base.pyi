from twisted.internet.defer import Deferred

class _Transport:
    def abortConnection(self) -> None: ...
    def loseConnection(self) -> None: ...

class _Broker:
    disconnected: bool
    transport: _Transport

class _Mind:
    broker: _Broker
    def callRemote(self, name: str, *args: object) -> Deferred[str]: ...

class Connection:
    mind: _Mind | None
    def detached(self, mind: _Mind) -> None: ...
