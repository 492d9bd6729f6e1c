"""Buildbot's configuration of a master, made from `farm.toml`."""

from functools import cache, partial
from pathlib import Path

from buildbot.plugins import util, worker
from buildbot.worker import AbstractWorker

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
"""A job counts as lost if its machine does not reconnect within this multiple of the patience."""


def configure(folder: str) -> dict[str, object]:
    """Return the `BuildmasterConfig` of the farm in a directory."""
    here = Path(folder).resolve()
    farm = load_farm(here)
    classes = machines_by_class(farm.machines)
    statuses, attempts = _statuses(), _attempts(shared=farm.shared)
    limits = RetryLimits(attempts=farm.attempts, pause=farm.pause, back=_RETURN * farm.patience)
    job = RunJob(folder=str(here), limits=limits, attempts=attempts)
    retries = RetryPolicy(limits, attempts, Plans(here))
    timed = timed_parts(here, farm)
    peers = [PeerMasters(str(here), retries.restart_grace)] if farm.shared else []
    return {
        "db": database_config(farm.database),
        "protocols": {"pb": {"port": worker_endpoint(here, farm)}},
        "www": _web(here, farm),
        "buildbotURL": farm.url,
        "title": "torchyard",
        "buildbotNetUsageData": None,
        "collapseRequests": False,
        # Buildbot's own order takes several queries for each builder and start.
        "prioritizeBuilders": lambda _master, builders: builders,
        "workers": [
            *(worker for machine in farm.machines for worker in _workers(here, machine)),
            *timed.workers,
        ],
        "builders": [*_builders(classes, job, retries, attempts), *timed.builders],
        "schedulers": [
            PlanScheduler(
                name=NAME,
                builderNames=sorted(classes),
                windows={kind: queue_window(able) for kind, able in classes.items()},
                folder=str(here),
            ),
            *timed.schedulers,
        ],
        "services": [
            Heartbeat(
                interval=farm.heartbeat,
                patience=farm.patience,
                statuses=statuses,
                attempts=attempts,
            ),
            DatabaseRetry(),
            Dispatcher(
                machines=list(farm.machines),
                folder=str(here),
                interval=farm.heartbeat,
                statuses=statuses,
            ),
            Janitor(folder=str(here), keep=farm.keep, shared=farm.shared),
            *peers,
        ],
        "multiMaster": farm.shared,
    }


@cache
def _statuses() -> WorkerStatuses:
    """Return the statuses of this process, which a new configuration keeps."""
    return WorkerStatuses()


@cache
def _attempts(*, shared: bool) -> AttemptHistory:
    """Return the history of this process, shared by running builds and a new configuration."""
    return AttemptHistory(shared=shared)


def _workers(folder: Path, machine: FarmMachine) -> list[AbstractWorker]:
    password = read_secret(folder, machine.name)
    facts = {"machine": machine.name, "copies": machine.copies}
    if machine.start:
        starter = MachineStarter(machine.name, machine.start, str(folder))
        return [
            OnDemandWorker(name, password, starter=starter, max_builds=1, properties=facts)
            for name in machine.worker_names
        ]
    return [
        worker.Worker(name, password, max_builds=1, properties=facts)
        for name in machine.worker_names
    ]


def _builders(
    classes: dict[str, list[FarmMachine]],
    job: RunJob,
    retries: RetryPolicy,
    attempts: AttemptHistory,
) -> list[util.BuilderConfig]:
    factory = util.BuildFactory([job])
    factory.buildClass = partial(JobBuild, attempts=attempts)
    return [
        util.BuilderConfig(
            name=kind,
            workernames=[name for machine in able for name in machine.worker_names],
            factory=factory,
            canStartBuild=retries,
        )
        for kind, able in sorted(classes.items())
    ]


def _web(folder: Path, farm: Farm) -> dict[str, object]:
    harden_web_server(is_behind_tls=farm.url.startswith("https://"))
    return {
        "port": farm.web.endpoint,
        "plugins": {PAGES: {}},
        "auth": PasswordAuth({name: read_secret(folder, name) for name in farm.users}),
        "authz": RoleAuthz(farm.users),
    }
