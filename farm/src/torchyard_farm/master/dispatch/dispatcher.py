"""Choose Buildbot's next job and its worker, by the rules of `placement`.

All state here can be read from Buildbot's tables again.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TypedDict, TypeVar

from buildbot.db.buildrequests import BuildRequestModel
from buildbot.master import BuildMaster
from buildbot.mq.base import MQBase, QueueRef
from buildbot.process.builder import Builder
from buildbot.process.buildrequest import BuildRequest
from buildbot.process.buildrequestdistributor import BasicBuildChooser, BuildChooserBase
from buildbot.process.workerforbuilder import AbstractWorkerForBuilder
from buildbot.worker import AbstractWorker
from twisted.internet import defer

from torchyard_farm.master.buildbot_fixes.stale_claims import StaleClaims
from torchyard_farm.master.buildbot_fixes.virtual_builders import read_single_builders
from torchyard_farm.master.builds import followed_jobs
from torchyard_farm.master.db.plan_tables import read_recent_inputs
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
from torchyard_farm.twisted_tools import async_to_deferred

T = TypeVar("T")

_ARRIVALS = (("buildrequests", None, "new"), ("buildrequests", None, "unclaimed"))


class BuilderQueues:
    """Remembers queues that were empty when last read, and had no arrivals since."""

    def __init__(self) -> None:
        self._consumers: list[QueueRef] = []
        self._empty: set[int] = set()
        self._arrivals = 0

    @async_to_deferred
    async def listen(self, mq: MQBase) -> None:
        """Subscribe to arrivals in this master's queues."""
        for arrival in _ARRIVALS:
            self._consumers.append(await mq.startConsuming(self._on_arrival, arrival))

    @async_to_deferred
    async def stop(self) -> None:
        while self._consumers:
            await defer.maybeDeferred(self._consumers.pop().stopConsuming)

    def _on_arrival(self, _key: object, request: Mapping[str, int]) -> None:
        self._arrivals += 1
        self._empty.discard(request["builderid"])

    @async_to_deferred
    async def read(self, builder: int, fetch: Callable[[], defer.Deferred[list[T]]]) -> list[T]:
        """Return the requests in a builder's queue; one known to be empty is not read."""
        if builder in self._empty:
            return []
        before = self._arrivals
        found = await fetch()
        if not found and before == self._arrivals:  # else a request arrived meanwhile
            self._empty.add(builder)
        return found

    def forget(self) -> None:
        """Read all queues again: requests added by other masters are not announced."""
        self._empty.clear()


_FINISHED = ("builds", None, "finished")

ReadRequest = Callable[[int], defer.Deferred[BuildRequest | None]]


class FinishedBuild(TypedDict):
    """The used part of Buildbot's announcement of an ended build."""

    workerid: int
    started_at: datetime
    complete_at: datetime


class QueuedRequest(TypedDict):
    """A request in a queue, as Buildbot's data API returns it."""

    buildrequestid: int
    buildsetid: int
    builderid: int
    submitted_at: datetime
    waited_for: bool
    priority: int


class Dispatcher(PollingService):
    """All pending jobs and all free resources, over all builders."""

    name = "dispatcher"

    def __init__(
        self, machines: list[FarmMachine], folder: str, interval: int, statuses: WorkerStatuses
    ) -> None:
        super().__init__(machines=machines, folder=folder, interval=interval, statuses=statuses)
        self.queues = BuilderQueues()
        self._cooldowns = Cooldowns()
        self._consumer: QueueRef | None = None

    def checkConfig(
        self, machines: list[FarmMachine], folder: str, interval: int, statuses: WorkerStatuses
    ) -> None:
        pass

    @async_to_deferred
    async def reconfigService(
        self, machines: list[FarmMachine], folder: str, interval: int, statuses: WorkerStatuses
    ) -> None:
        await super().reconfigService()
        self.locality = InputLocality()
        self._folder = Path(folder)
        self._machines = {machine.name: machine for machine in machines}
        self._machine_names = {
            worker: machine.name for machine in machines for worker in machine.worker_names
        }
        self._statuses = statuses
        self._pending: dict[str, dict[int, PendingJob]] = {}
        self._wakeups = Wakeups()
        self._stale_claims = StaleClaims()
        await self._stop_listening()
        await self.queues.listen(self.master.mq)
        self._consumer = await self.master.mq.startConsuming(self._on_finished, _FINISHED)
        recent = await self.master.db.pool.do(read_recent_inputs, self.master.db.model)
        for worker, fingerprints in recent:
            if worker in self._machine_names:
                self.locality.record(self._machine_names[worker], fingerprints)
        read_single_builders(self.master)
        self.master.botmaster.brd.BuildChooser = self._chooser
        self.start_polling(self._poll, interval, now=False)

    @async_to_deferred
    async def stopService(self) -> None:
        self.stop_polling()
        await self._stop_listening()
        await super().stopService()

    async def _stop_listening(self) -> None:
        await self.queues.stop()
        if self._consumer is not None:
            await defer.maybeDeferred(self._consumer.stopConsuming)
            self._consumer = None

    def now(self) -> float:
        return self.master.reactor.seconds()

    def _chooser(self, builder: Builder, master: BuildMaster) -> BuildChooserBase:
        """Return the chooser of a builder; builders without jobs get Buildbot's own."""
        if self._machines_of(builder):
            return JobBuildChooser(self, builder, master)
        return BasicBuildChooser(builder, master)

    def machine_of(self, worker: AbstractWorker) -> str:
        return self._machine_names[worker.name]

    def capacities(self) -> dict[str, WorkerCapacity]:
        """Return the resources of all connected or startable machines."""
        running, now = followed_jobs(self.master), self.now()
        found = {}
        for worker in self.master.workers.workers.values():
            name = self._machine_names.get(worker.name)
            if name is None or (worker.conn is None and not self._machines[name].start):
                continue
            followed = running.get(name, {})
            self._statuses.introduce(name, worker, followed)
            orphans = self._statuses.orphans(name, followed)
            found[name] = WorkerCapacity(
                name,
                capacity(self._machines[name], self._statuses.get(name)),
                sum_resources([*followed.values(), *orphans.values()]),
                orphans=tuple(orphans),
                is_cooling_down=self._cooldowns.is_cooling_down(name, now),
            )
        return found

    def wake_after_cooldowns(self, builder: Builder) -> None:
        """Let Buildbot check a builder's queue when all cooldowns are over."""
        self._wakeups.schedule(builder, self._cooldowns.latest_end(self.now()))

    def _on_finished(self, _key: object, build: FinishedBuild) -> None:
        """Start the cooldown of the machine of a finished build."""
        took = (build["complete_at"] - build["started_at"]).total_seconds()
        for worker in self.master.workers.workers.values():
            if worker.workerid == build["workerid"] and worker.name in self._machine_names:
                self._cooldowns.start(self._machine_names[worker.name], took, self.now())

    @async_to_deferred
    async def _poll(self) -> None:
        """Start jobs that no event announced, and release stale claims."""
        await self._stale_claims.release(self.master)
        self._statuses.write(self._folder)
        self.wake_all()

    def wake_all(self) -> None:
        """Let Buildbot check all queues, even without an event."""
        self.queues.forget()
        self.master.botmaster.maybeStartBuildsForAllBuilders()

    async def pending_jobs(
        self, builder: str, requests: Iterable[int], read: ReadRequest
    ) -> dict[int, PendingJob]:
        """Return the jobs of a builder's unclaimed requests; each request is read once."""
        before = self._pending.get(builder, {})
        found: dict[int, PendingJob] = {}
        for number in requests:
            job = before.get(number) or _pending_job(await read(number))
            if job is not None:
                found[number] = job
        self._pending[builder] = found
        return found

    def reservations(self, capacities: Mapping[str, WorkerCapacity]) -> dict[str, PendingJob]:
        """Return the machines reserved for pending jobs of any builder."""
        builders = self.master.botmaster.builders
        able = {
            name: self._machines_of(builders[name]) for name in self._pending if name in builders
        }
        pending = (
            (job, machines)
            for name, machines in able.items()
            for job in self._pending[name].values()
        )
        return reserve_workers(pending, capacities, self.now())

    def _machines_of(self, builder: Builder) -> set[str]:
        names = builder.config.workernames
        return {self._machine_names[name] for name in names if name in self._machine_names}

    def started(self, builder: str, job: PendingJob, machine: str) -> None:
        """Record that a job starts: its inputs, and then its result, will be on the machine."""
        self._pending.get(builder, {}).pop(job.request, None)
        self.locality.record(machine, [*job.inputs, job.fingerprint])


def _pending_job(request: BuildRequest | None) -> PendingJob | None:
    if request is None:
        return None
    properties = request.properties
    return PendingJob(
        request=request.id,
        fingerprint=properties.getProperty("fingerprint", ""),
        urgency=request.priority,
        since=float(request.submittedAt or 0),
        needs=resources_for(properties.getProperty("memory"), properties.getProperty("disk")),
        inputs=properties.getProperty("inputs", {}),
    )


class JobBuildChooser(BuildChooserBase):
    """Chooses the next builds of one builder, until there is none to start."""

    def __init__(self, dispatcher: Dispatcher, builder: Builder, master: BuildMaster) -> None:
        super().__init__(builder, master)
        self._dispatcher = dispatcher
        self._workers: dict[str, list[AbstractWorkerForBuilder]] = {}
        for worker in builder.getAvailableWorkers():
            if worker.worker is not None:
                machine = dispatcher.machine_of(worker.worker)
                self._workers.setdefault(machine, []).append(worker)
        self._capacities: dict[str, WorkerCapacity] = {}
        builder.maybeStartBuild = self._start  # type: ignore[method-assign] # Buildbot has no hook

    def _start(
        self, workerforbuilder: AbstractWorkerForBuilder, breqs: list[BuildRequest]
    ) -> defer.Deferred[bool]:
        """Start a build, unless its worker was lost while Buildbot claimed the request.

        Buildbot itself fails then, and keeps the request claimed forever.
        """
        if workerforbuilder.worker is None:
            return defer.succeed(result=False)
        return type(self.bldr).maybeStartBuild(self.bldr, workerforbuilder, breqs)

    @async_to_deferred
    async def popNextBuild(
        self,
    ) -> tuple[AbstractWorkerForBuilder | None, BuildRequest | None]:
        if not any(self._workers.values()):
            return None, None
        builder = await self.bldr.getBuilderId()
        queued = await self._dispatcher.queues.read(builder, self._fetchUnclaimedBrdicts)
        requests = {request["buildrequestid"]: request for request in queued}

        def read(number: int) -> defer.Deferred[BuildRequest | None]:
            return self._getBuildRequestForBrdict(requests[number])

        pending = dict(await self._dispatcher.pending_jobs(self.bldr.name, requests, read))
        if not pending:
            return None, None
        self._capacities = self._capacities or self._dispatcher.capacities()
        return await self._choose(pending, read)

    async def _choose(
        self, pending: dict[int, PendingJob], read: ReadRequest
    ) -> tuple[AbstractWorkerForBuilder | None, BuildRequest | None]:
        """Return the first placement that Buildbot allows."""
        reserved = self._dispatcher.reservations(self._capacities)
        while True:
            able = [
                self._capacities[name]._replace(free_slots=len(workers))
                for name, workers in self._workers.items()
                if name in self._capacities
            ]
            found = choose_placement(
                pending.values(), able, reserved, self._dispatcher.locality, self._dispatcher.now()
            )
            if found is None:
                if any(capacity.is_cooling_down for capacity in able):
                    self._dispatcher.wake_after_cooldowns(self.bldr)
                return None, None
            job, machine = found
            request = await read(job.request)
            worker = self._workers[machine][-1]
            if request is not None and await self.bldr.canStartBuild(worker, request):
                self._workers[machine].pop()
                self._capacities[machine] = self._capacities[machine].with_job(job)
                self._removeBuildRequest(request)
                self._dispatcher.started(self.bldr.name, job, machine)
                return worker, request
            pending[job.request] = job._replace(excluded=job.excluded | {machine})

    @async_to_deferred
    async def _getBuildRequestForBrdict(self, brdict: QueuedRequest) -> BuildRequest | None:
        """Return a request; unlike Buildbot, without reading the builder's known name."""
        number = brdict["buildrequestid"]
        if number not in self.breqCache:
            model = BuildRequestModel(
                buildrequestid=number,
                buildsetid=brdict["buildsetid"],
                builderid=brdict["builderid"],
                buildername=self.bldr.name,
                submitted_at=brdict["submitted_at"],
                waited_for=brdict["waited_for"],
                priority=brdict["priority"],
            )
            self.breqCache[number] = await BuildRequest.fromBrdict(self.master, model)
        return self.breqCache[number]
