"""Builds whose worker may be lost at any moment."""

from collections.abc import Generator
from typing import Any

from buildbot.process.build import Build
from buildbot.process.results import EXCEPTION, RETRY
from twisted.internet import defer
from twisted.python import log


class JobBuild(Build):
    """Buildbot never ends a build whose worker is lost while it is prepared, or with an error."""

    @defer.inlineCallbacks
    def startBuild(self, workerforbuilder: Any) -> Generator[Any, Any, None]:
        try:
            yield super().startBuild(workerforbuilder)
        except Exception:  # noqa: BLE001 - whatever it is, nobody else would try the job again
            log.err(None, "a build could not begin, and is tried again")
            if self._preparation_step is not None:
                step = self._preparation_step.stepid
                yield self.master.data.updates.finishStep(step, RETRY, hidden=False)
            yield self.buildFinished(["worker", "lost"], RETRY)

    def buildFinished(self, text: list[str], results: int) -> Any:
        is_lost = self.workerforbuilder.worker is None
        return super().buildFinished(text, RETRY if is_lost and results == EXCEPTION else results)
