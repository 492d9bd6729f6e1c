from twisted.internet.defer import Deferred

class SourceStampsConnectorComponent:
    def findSourceStampId(
        self, *, codebase: str, project: str, repository: str
    ) -> Deferred[int]: ...
