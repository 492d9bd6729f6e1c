from buildbot_worker.pb import BotFactory, BotPb
from twisted.application.service import MultiService

class Worker(MultiService):
    bot: BotPb
    bf: BotFactory
    def __init__(
        self,
        buildmaster_host: str | None,
        port: int | None,
        name: str,
        passwd: str,
        basedir: str,
        keepalive: int | None,
        *,
        connection_string: str | None = None,
    ) -> None: ...
