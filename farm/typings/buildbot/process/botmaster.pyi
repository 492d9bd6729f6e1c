from buildbot.process.builder import Builder
from buildbot.process.buildrequestdistributor import BuildRequestDistributor

class BotMaster:
    builders: dict[str, Builder]
    brd: BuildRequestDistributor
    shuttingDown: bool
    def maybeStartBuildsForAllBuilders(self) -> None: ...
    def maybeStartBuildsForBuilder(self, buildername: str) -> None: ...
    def remove_in_progress_buildrequest(self, brid: int) -> str | bool | None: ...
