"""A build of one job: its worker may be lost at any moment, and the database is asked seldom."""

import json
from collections.abc import Generator
from typing import Any, ClassVar

from buildbot.process.build import Build
from buildbot.process.results import CANCELLED, EXCEPTION, RETRY
from twisted.internet import defer
from twisted.python import log

from torchyard_farm.master.buildbot_fixes.virtual_builders import virtual_builder_id
from torchyard_farm.master.db.attempts_db import ATTEMPT, VERDICT, AttemptHistory
from torchyard_farm.scheduling.attempts import AttemptVerdict, attempt_number


class JobBuild(Build):
    """Buildbot never ends a build whose worker is lost while it is prepared, or with an error.

    Nor one that is cancelled between the moment when it is chosen and that when it begins.
    """

    _pages: ClassVar[dict[str, int]] = {}
    """The cells' pages that are known already: their words need not be written again."""

    def __init__(self, requests: list[Any], builder: Any, tries: AttemptHistory) -> None:
        super().__init__(requests, builder)
        self._tries = tries

    @defer.inlineCallbacks
    def startBuild(self, workerforbuilder: Any) -> Generator[Any, Any, None]:
        try:
            yield super().startBuild(workerforbuilder)
        except Exception:  # noqa: BLE001 - whatever it is, nobody else would try the job again
            log.err(None, "a build could not begin, and is tried again")
            step = self._preparation_step and self._preparation_step.stepid
            if step is not None:
                yield self.master.data.updates.finishStep(step, RETRY, hidden=False)
            yield self.buildFinished(["worker", "lost"], RETRY)
        else:
            if self.stopped and self._preparation_step is None:
                yield self.buildFinished(["cancelled"], CANCELLED)

    def buildFinished(self, text: list[str], results: int) -> Any:
        is_lost = self.workerforbuilder.worker is None
        if (results == EXCEPTION and is_lost) or (
            results == CANCELLED and self._is_only_stopping()
        ):
            self.results = results = RETRY  # else the worse of the two counts
        return super().buildFinished(text, results)

    def _is_only_stopping(self) -> bool:
        """Whether the master stops just when a job begins; Buildbot would cancel it for good."""
        is_unwanted = self.getProperty(VERDICT) == AttemptVerdict.ENDED.value
        return self.master.botmaster.shuttingDown and not is_unwanted

    @defer.inlineCallbacks
    def getBuilderId(self) -> Generator[Any, Any, int]:
        page = self.getProperty(self.VIRTUAL_BUILDERNAME_PROP)
        if page not in self._pages:
            self._pages[page] = yield virtual_builder_id(self.master, page)
        return self._pages[page]

    @defer.inlineCallbacks
    def _setup_locks(self) -> Generator[Any, Any, None]:
        """Buildbot calls this when all properties are known, and then writes one after the other.

        It leaves alone those that are there: so all are written at once before.
        """
        yield super()._setup_locks()
        if self.workerforbuilder.worker.conn is not None:
            self.setupWorkerProperties(self.workerforbuilder)
        attempt = attempt_number((yield self._tries.read(self.master, self.requests[0].id)))
        if attempt > 1:
            self.setProperty(ATTEMPT, attempt, "tries")
        yield self.master.db.pool.do_with_transaction(self._write_properties)

    def _write_properties(self, connection: Any) -> None:
        rows = [
            {"buildid": self.buildid, "name": name, "value": json.dumps(value), "source": source}
            for name, (value, source) in self.getProperties().asDict().items()
        ]
        connection.execute(self.master.db.model.build_properties.insert(), rows)
