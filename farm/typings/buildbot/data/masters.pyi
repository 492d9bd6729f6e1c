from twisted.internet.defer import Deferred

class Master:
    def _masterDeactivated(self, masterid: int, name: str) -> Deferred[None]: ...
