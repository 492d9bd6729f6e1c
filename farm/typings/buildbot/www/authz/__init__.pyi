from typing import Any

from buildbot.master import BuildMaster
from twisted.internet.defer import Deferred

class Forbidden(Exception): ...

class Authz:
    master: BuildMaster
    def __init__(self) -> None: ...
    def assertUserAllowed(
        self, ep: Any, action: str, options: dict[str, Any], userDetails: dict[str, Any]
    ) -> Deferred[None]: ...
