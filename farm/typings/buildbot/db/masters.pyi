from dataclasses import dataclass
from datetime import datetime

from twisted.internet.defer import Deferred

@dataclass
class MasterModel:
    id: int
    name: str
    active: bool
    last_active: datetime

class MastersConnectorComponent:
    def getMasters(self) -> Deferred[list[MasterModel]]: ...
    def setMasterState(self, masterid: int, active: bool) -> Deferred[bool]: ...
