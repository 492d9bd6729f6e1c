"""Says which waiting job Buildbot starts next, and where: what `choice` decides.

Nothing is remembered here but what Buildbot's tables tell as well.
"""

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

from buildbot.db.buildrequests import BuildRequestModel
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.buildrequestdistributor import BasicBuildChooser, BuildChooserBase
from twisted.internet import defer

from torchyard_farm.master.buildbot_fixes.stale_claims import StaleClaims
from torchyard_farm.master.buildbot_fixes.virtual_builders import read_single_builders
from torchyard_farm.master.builds import followed_jobs
from torchyard_farm.master.db.plan_tables import read_recent_inputs
from torchyard_farm.master.dispatch.queues import BuilderQueues
from torchyard_farm.master.dispatch.wakeups import Wakeups
from torchyard_farm.master.polling import PollingService
from torchyard_farm.master.status.worker_statuses import WorkerStatuses
from torchyard_farm.scheduling.cooldown import Cooldowns
from torchyard_farm.scheduling.locality import InputLocality
from torchyard_farm.scheduling.placement import (
    PendingJob,
    WorkerCapacity,
    choose_placement,
    reserve_workers,
)
from torchyard_farm.scheduling.resources import resources_for, sum_resources
from torchyard_farm.scheduling.worker_status import capacity
from torchyard_farm.settings.farm import FarmMachine

_FIELDS = ("buildrequestid", "buildsetid", "builderid", "submitted_at", "waited_for", "priority")

_END = ("builds", None, "finished")

Steps = Generator[Any, Any, Any]


class Dispatcher(PollingService):
    """All that waits and all that there is room for, over all builders."""

    name = "desk"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.queues = BuilderQueues()
        self._rests = Cooldowns()
        self._consumer: Any = None

    def checkConfig(
        self, machines: list[FarmMachine], folder: str, interval: int, looks: WorkerStatuses
    ) -> None:
        pass

    @defer.inlineCallbacks
    def reconfigService(
        self, machines: list[FarmMachine], folder: str, interval: int, looks: WorkerStatuses
    ) -> Steps:
        yield super().reconfigService()
        self.trees = InputLocality()
        self._folder = Path(folder)
        self._machines = {machine.name: machine for machine in machines}
        self._agents = {agent: machine.name for machine in machines for agent in machine.agents}
        self._looks = looks
        self._waiting: dict[str, dict[int, PendingJob]] = {}
        self._reminders = Wakeups()
        self._forgotten = StaleClaims()
        yield self._stop_listening()
        yield self.queues.listen(self.master.mq)
        self._consumer = yield self.master.mq.startConsuming(self._hear_end, _END)
        for agent, had in (yield self.master.db.pool.do(read_recent_inputs, self.master.db.model)):
            if agent in self._agents:
                self.trees.note(self._agents[agent], had)
        read_single_builders(self.master)
        self.master.botmaster.brd.BuildChooser = self._chooser
        self.repeat(self._look_around, interval, now=False)

    @defer.inlineCallbacks
    def stopService(self) -> Steps:
        self.cease()
        yield self._stop_listening()
        yield super().stopService()

    @defer.inlineCallbacks
    def _stop_listening(self) -> Steps:
        yield self.queues.stop()
        if self._consumer is not None:
            yield self._consumer.stopConsuming()
            self._consumer = None

    def now(self) -> float:
        seconds: float = self.master.reactor.seconds()
        return seconds

    def _chooser(self, builder: Any, master: Any) -> BuildChooserBase:
        """Builders that are not for jobs are Buildbot's own affair."""
        able = self._able(builder)
        return (
            JobBuildChooser(self, builder, master) if able else BasicBuildChooser(builder, master)
        )

    def machine_of(self, worker: Any) -> str:
        return self._agents[worker.name]

    def places(self) -> dict[str, WorkerCapacity]:
        """The machines that are connected or can be started, with what is booked of them."""
        running, now = followed_jobs(self.master), self.now()
        found = {}
        for worker in self.master.workers.workers.values():
            name = self._agents.get(worker.name)
            if name is None or (worker.conn is None and not self._machines[name].start):
                continue
            followed = running.get(name, {})
            self._looks.meet(name, worker, followed)
            left = self._looks.strays(name, followed)
            has = capacity(self._machines[name], self._looks.of(name))
            booked = sum_resources([*followed.values(), *left.values()])
            rests = self._rests.is_resting(name, now)
            found[name] = WorkerCapacity(name, has, booked, strays=tuple(left), rests=rests)
        return found

    def ask_again(self, builder: Any) -> None:
        """Let Buildbot look at a builder's queue again when all have rested."""
        self._reminders.ask_again(builder, self._rests.over(self.now()))

    def _hear_end(self, _key: object, build: dict[str, Any]) -> None:
        """A build is over, and its machine is about to be free."""
        took = (build["complete_at"] - build["started_at"]).total_seconds()
        for worker in self.master.workers.workers.values():
            if worker.workerid == build["workerid"] and worker.name in self._agents:
                self._rests.end(self._agents[worker.name], took, self.now())

    @defer.inlineCallbacks
    def _look_around(self) -> Steps:
        """See whether something can begin that nobody told of, or was forgotten."""
        yield self._forgotten.give_back(self.master)
        self._looks.write(self._folder)
        self.look_everywhere()

    def look_everywhere(self) -> None:
        """Let Buildbot look at all queues, also at those that nobody told of."""
        self.queues.forget()
        self.master.botmaster.maybeStartBuildsForAllBuilders()

    @defer.inlineCallbacks
    def wishes(self, kind: str, requests: Iterable[int], read: Callable[[int], Any]) -> Steps:
        """What the unclaimed requests of a builder want; each is read once."""
        before = self._waiting.get(kind, {})
        found: dict[int, PendingJob] = {}
        for number in requests:
            found[number] = before.get(number) or _pending_job((yield read(number)))
        self._waiting[kind] = found
        return found

    def held(self, places: dict[str, WorkerCapacity]) -> dict[str, PendingJob]:
        """The machines on which room is kept for a job, of whatever kind."""
        builders = self.master.botmaster.builders
        able = {kind: self._able(builders[kind]) for kind in self._waiting if kind in builders}
        wishes = (
            (wish, machines)
            for kind, machines in able.items()
            for wish in self._waiting[kind].values()
        )
        return reserve_workers(wishes, places, self.now())

    def _able(self, builder: Any) -> set[str]:
        return {self._agents[name] for name in builder.config.workernames if name in self._agents}

    def begin(self, kind: str, wish: PendingJob, machine: str) -> None:
        """A job begins: from now on the machine has what it is made from, and soon its result."""
        self._waiting.get(kind, {}).pop(wish.request, None)
        self.trees.note(machine, [*wish.inputs, wish.fingerprint])


def _pending_job(request: Any) -> PendingJob:
    """What a request wants."""
    told = request.properties
    return PendingJob(
        request=request.id,
        fingerprint=told.getProperty("fingerprint", ""),
        urgency=request.priority,
        since=float(request.submittedAt or 0),
        wants=resources_for(told.getProperty("memory"), told.getProperty("disk")),
        inputs=told.getProperty("inputs", {}),
    )


class JobBuildChooser(BuildChooserBase):
    """What Buildbot asks for the next build of one builder, until there is none."""

    def __init__(self, desk: Dispatcher, builder: Any, master: Any) -> None:
        super().__init__(builder, master)
        self._desk = desk
        self._agents: dict[str, list[Any]] = {}
        for worker in builder.getAvailableWorkers():
            self._agents.setdefault(desk.machine_of(worker.worker), []).append(worker)
        self._places: dict[str, WorkerCapacity] = {}
        builder.maybeStartBuild = self._start

    def _start(self, agent: Any, requests: list[Any]) -> Any:
        """Begin a build; if its agent was lost while Buildbot claimed the job, give that back.

        Buildbot itself fails then, and keeps the job claimed for ever.
        """
        if agent.worker is None:
            return defer.succeed(result=False)
        return type(self.bldr).maybeStartBuild(self.bldr, agent, requests)

    @defer.inlineCallbacks
    def popNextBuild(self) -> Steps:
        if not any(self._agents.values()):
            return None, None
        builder = yield self.bldr.getBuilderId()
        waiting = yield self._desk.queues.read(builder, self._fetchUnclaimedBrdicts)
        requests = {request["buildrequestid"]: request for request in waiting}

        def read(number: int) -> Any:
            return self._getBuildRequestForBrdict(requests[number])

        wishes = dict((yield self._desk.wishes(self.bldr.name, requests, read)))
        if not wishes:
            return None, None
        self._places = self._places or self._desk.places()
        held = self._desk.held(self._places)
        while True:
            able = [
                self._places[name]._replace(idle=len(agents))
                for name, agents in self._agents.items()
                if name in self._places
            ]
            found = choose_placement(
                wishes.values(), able, held, self._desk.trees, self._desk.now()
            )
            if found is None:
                if any(place.rests for place in able):
                    self._desk.ask_again(self.bldr)
                return None, None
            wish, machine = found
            request = yield read(wish.request)
            agent = self._agents[machine][-1]
            if request is not None and (yield self.bldr.canStartBuild(agent, request)):
                self._agents[machine].pop()
                self._places[machine] = self._places[machine].with_job(wish)
                self._removeBuildRequest(request)
                self._desk.begin(self.bldr.name, wish, machine)
                return agent, request
            wishes[wish.request] = wish._replace(barred=wish.barred | {machine})

    @defer.inlineCallbacks
    def _getBuildRequestForBrdict(self, told: dict[str, Any]) -> Steps:
        """Buildbot reads the name of the builder here, which is known."""
        number = told["buildrequestid"]
        if number not in self.breqCache:
            known = {name: told[name] for name in _FIELDS}
            model = BuildRequestModel(**known, buildername=self.bldr.name)
            self.breqCache[number] = yield BuildRequest.fromBrdict(self.master, model)
        return self.breqCache[number]
