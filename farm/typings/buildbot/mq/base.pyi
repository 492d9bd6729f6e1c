from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

class QueueRef:
    def stopConsuming(self) -> Deferred[None] | None: ...

class MQBase:
    def startConsuming(
        self, callback: Callable[[Any, Any], object], filter: tuple[str | None, ...]
    ) -> Deferred[QueueRef]: ...
    def produce(self, routingKey: tuple[str, ...], data: Any) -> None: ...
