from dataclasses import dataclass
from datetime import datetime

@dataclass
class BuildRequestModel:
    buildrequestid: int
    buildsetid: int
    builderid: int
    buildername: str
    submitted_at: datetime
    complete_at: datetime | None = None
    complete: bool = False
    results: int | None = None
    waited_for: bool = False
    priority: int = 0
    claimed_at: datetime | None = None
    claimed_by_masterid: int | None = None
