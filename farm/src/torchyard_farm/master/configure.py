"""The configuration of a master, made from `farm.toml`."""

from functools import cache, partial
from pathlib import Path
from typing import Any

from buildbot.plugins import util, worker

from torchyard_farm.master.attempts.job_build import JobBuild
from torchyard_farm.master.attempts.retry_policy import RetryPolicy
from torchyard_farm.master.attempts.run_job import RunJob
from torchyard_farm.master.authz import PasswordAuth, RoleAuthz
from torchyard_farm.master.buildbot_fixes.database_retry import DatabaseRetry
from torchyard_farm.master.buildbot_fixes.web_responses import harden_web_server
from torchyard_farm.master.db.attempts_db import AttemptHistory
from torchyard_farm.master.db.connection import database_config
from torchyard_farm.master.dispatch.dispatcher import Dispatcher
from torchyard_farm.master.dispatch.on_demand import MachineStarter, OnDemandWorker
from torchyard_farm.master.peers.peers import PeerMasters
from torchyard_farm.master.plans.janitor import Janitor
from torchyard_farm.master.plans.plan_scheduler import PlanScheduler
from torchyard_farm.master.plans.submit import NAME
from torchyard_farm.master.schedules.timed_scheduler import timed_parts
from torchyard_farm.master.status.heartbeat import Heartbeat
from torchyard_farm.master.status.worker_statuses import WorkerStatuses
from torchyard_farm.scheduling.attempts import RetryLimits
from torchyard_farm.scheduling.job_classes import machines_by_class, queue_window
from torchyard_farm.scheduling.plans import PAGES, Plans
from torchyard_farm.settings.farm import Farm, FarmMachine, load_farm
from torchyard_farm.settings.layout import read_secret
from torchyard_farm.settings.tls import worker_endpoint

_RETURN = 3
"""A machine has this times the patience to come back, before it counts as taken down."""


def configure(folder: str) -> dict[str, Any]:
    """What Buildbot wants to know: its `BuildmasterConfig`."""
    here = Path(folder).resolve()
    farm = load_farm(here)
    kinds = machines_by_class(farm.machines)
    looks, tries = _looks(), _tries(shared=farm.shared)
    limits = RetryLimits(attempts=farm.attempts, pause=farm.pause, back=_RETURN * farm.patience)
    job = RunJob(folder=str(here), limits=limits, tries=tries)
    affinity = RetryPolicy(limits, tries, Plans(here))
    clock = timed_parts(here, farm)
    peers = [PeerMasters(folder=str(here), when_lost=affinity.begin)] if farm.shared else []
    return {
        "db": database_config(farm.database),
        "protocols": {"pb": {"port": worker_endpoint(here, farm)}},
        "www": _web(here, farm),
        "buildbotURL": farm.url,
        "title": "torchyard",
        "buildbotNetUsageData": None,
        "collapseRequests": False,
        # Buildbot's own order asks the database several times for each builder and start.
        "prioritizeBuilders": lambda _master, builders: builders,
        "workers": [
            *(agent for machine in farm.machines for agent in _agents(here, machine)),
            *clock.workers,
        ],
        "builders": [*_builders(kinds, job, affinity, tries), *clock.builders],
        "schedulers": [
            PlanScheduler(
                name=NAME,
                builderNames=sorted(kinds),
                windows={kind: queue_window(able) for kind, able in kinds.items()},
                folder=str(here),
            ),
            *clock.schedulers,
        ],
        "services": [
            Heartbeat(interval=farm.heartbeat, patience=farm.patience, looks=looks, tries=tries),
            DatabaseRetry(),
            Dispatcher(
                machines=list(farm.machines),
                folder=str(here),
                interval=farm.heartbeat,
                looks=looks,
            ),
            Janitor(folder=str(here), keep=farm.keep, shared=farm.shared),
            *peers,
        ],
        "multiMaster": farm.shared,
    }


@cache
def _looks() -> WorkerStatuses:
    """The same for each configuration of a process: nothing of what was told is forgotten."""
    return WorkerStatuses()


@cache
def _tries(*, shared: bool) -> AttemptHistory:
    """The same for each configuration of a process: builds go on with the one they began with."""
    return AttemptHistory(shared=shared)


def _agents(folder: Path, machine: FarmMachine) -> list[Any]:
    password = read_secret(folder, machine.name)
    facts = {"machine": machine.name, "copies": machine.copies}
    make = worker.Worker
    if machine.start:
        make = partial(
            OnDemandWorker, starter=MachineStarter(machine.name, machine.start, str(folder))
        )
    return [make(name, password, max_builds=1, properties=facts) for name in machine.agents]


def _builders(
    kinds: dict[str, list[FarmMachine]], job: RunJob, affinity: RetryPolicy, tries: AttemptHistory
) -> list[Any]:
    factory = util.BuildFactory([job])
    factory.buildClass = partial(JobBuild, tries=tries)
    return [
        util.BuilderConfig(
            name=kind,
            workernames=[name for machine in able for name in machine.agents],
            factory=factory,
            canStartBuild=affinity,
        )
        for kind, able in sorted(kinds.items())
    ]


def _web(folder: Path, farm: Farm) -> dict[str, Any]:
    harden_web_server(is_behind_tls=farm.url.startswith("https://"))
    return {
        "port": farm.web.endpoint,
        "plugins": {PAGES: {}},
        "auth": PasswordAuth({name: read_secret(folder, name) for name in farm.users}),
        "authz": RoleAuthz(farm.users),
    }
