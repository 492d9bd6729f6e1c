from collections.abc import Callable
from dataclasses import dataclass

from twisted.internet.defer import Deferred

@dataclass
class BuilderModel:
    id: int
    name: str
    description: str | None = None
    description_format: str | None = None
    description_html: str | None = None
    projectid: int | None = None
    tags: list[str] = ...
    masterids: list[int] = ...

class BuildersConnectorComponent:
    getBuilder: Callable[[int], Deferred[BuilderModel | None]]
    def updateBuilderInfo(
        self,
        builderid: int,
        description: str | None,
        description_format: str | None,
        description_html: str | None,
        projectid: int | None,
        tags: list[str],
    ) -> Deferred[None]: ...
