from enum import Enum
from typing import Any

from twisted.internet.defer import Deferred

class EndpointKind(Enum):
    SINGLE = 1
    COLLECTION = 2
    RAW = 3
    RAW_INLINE = 4

class ResourceType:
    name: str
    endpoints: list[type[Endpoint]]

class Endpoint:
    kind: EndpointKind
    rtype: ResourceType
    pathPatterns: list[str]
    def control(self, action: str, args: dict[str, Any], kwargs: dict[str, Any]) -> Any: ...
    def get(self, resultSpec: Any, kwargs: dict[str, Any]) -> Deferred[Any]: ...
