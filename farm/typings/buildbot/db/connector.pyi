from buildbot.db.builders import BuildersConnectorComponent
from buildbot.db.masters import MastersConnectorComponent
from buildbot.db.model import Model
from buildbot.db.pool import DBThreadPool
from buildbot.db.sourcestamps import SourceStampsConnectorComponent
from buildbot.db.state import StateConnectorComponent

class DBConnector:
    pool: DBThreadPool
    model: type[Model]
    builders: BuildersConnectorComponent
    masters: MastersConnectorComponent
    sourcestamps: SourceStampsConnectorComponent
    state: StateConnectorComponent
