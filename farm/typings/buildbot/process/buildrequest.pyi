from typing import Self

from buildbot.db.buildrequests import BuildRequestModel
from buildbot.master import BuildMaster
from buildbot.process.properties import Properties
from twisted.internet.defer import Deferred

class BuildRequest:
    id: int
    priority: int
    submittedAt: int | None
    properties: Properties
    @classmethod
    def fromBrdict(cls, master: BuildMaster, brdict: BuildRequestModel) -> Deferred[Self]: ...
