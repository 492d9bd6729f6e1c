from collections.abc import Callable

from buildbot.master import BuildMaster
from twisted.internet.defer import Deferred
from twisted.web import resource
from twisted.web.server import Request

class Resource(resource.Resource):
    master: BuildMaster
    def __init__(self, master: BuildMaster) -> None: ...
    def asyncRenderHelper(
        self, request: Request, _callable: Callable[[Request], Deferred[bytes | None]]
    ) -> int: ...
