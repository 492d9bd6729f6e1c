"""The configuration of a master, made from `farm.toml`."""

from functools import cache, partial
from pathlib import Path
from typing import Any

from buildbot.plugins import util, worker

from torchyard_farm.jobs.attempts import Limits
from torchyard_farm.jobs.kinds import machines_by_kind, window_of
from torchyard_farm.jobs.plans import PAGES, Plans
from torchyard_farm.master.affinity import Affinity
from torchyard_farm.master.build import JobBuild
from torchyard_farm.master.calendar import calendar
from torchyard_farm.master.database import Database, database_of
from torchyard_farm.master.desk import Desk
from torchyard_farm.master.gate import Gate, Passwords
from torchyard_farm.master.heartbeat import Heartbeat
from torchyard_farm.master.janitor import Janitor
from torchyard_farm.master.looks import Looks
from torchyard_farm.master.ondemand import OnDemand, Starter
from torchyard_farm.master.peers import Peers
from torchyard_farm.master.scheduler import PlanScheduler
from torchyard_farm.master.sending import NAME
from torchyard_farm.master.step import RunJob
from torchyard_farm.master.tries import Tries
from torchyard_farm.master.web import answer_carefully
from torchyard_farm.settings.farm import Farm, Machine, load_farm
from torchyard_farm.settings.layout import secret_of
from torchyard_farm.settings.tls import endpoint_of

_RETURN = 3
"""A machine has this times the patience to come back, before it counts as taken down."""


def configure(folder: str) -> dict[str, Any]:
    """What Buildbot wants to know: its `BuildmasterConfig`."""
    here = Path(folder).resolve()
    farm = load_farm(here)
    kinds = machines_by_kind(farm.machines)
    looks, tries = _looks(), _tries(shared=farm.shared)
    limits = Limits(attempts=farm.attempts, pause=farm.pause, back=_RETURN * farm.patience)
    job = RunJob(folder=str(here), limits=limits, tries=tries)
    affinity = Affinity(limits, tries, Plans(here))
    clock = calendar(here, farm)
    peers = [Peers(folder=str(here), when_lost=affinity.begin)] if farm.shared else []
    return {
        "db": database_of(farm.database),
        "protocols": {"pb": {"port": endpoint_of(here, farm)}},
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
                windows={kind: window_of(able) for kind, able in kinds.items()},
                folder=str(here),
            ),
            *clock.schedulers,
        ],
        "services": [
            Heartbeat(interval=farm.heartbeat, patience=farm.patience, looks=looks, tries=tries),
            Database(),
            Desk(
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
def _looks() -> Looks:
    """The same for each configuration of a process: nothing of what was told is forgotten."""
    return Looks()


@cache
def _tries(*, shared: bool) -> Tries:
    """The same for each configuration of a process: builds go on with the one they began with."""
    return Tries(shared=shared)


def _agents(folder: Path, machine: Machine) -> list[Any]:
    password = secret_of(folder, machine.name)
    facts = {"machine": machine.name, "copies": machine.copies}
    make = worker.Worker
    if machine.start:
        make = partial(OnDemand, starter=Starter(machine.name, machine.start, str(folder)))
    return [make(name, password, max_builds=1, properties=facts) for name in machine.agents]


def _builders(
    kinds: dict[str, list[Machine]], job: RunJob, affinity: Affinity, tries: Tries
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
    answer_carefully(is_behind_tls=farm.url.startswith("https://"))
    return {
        "port": farm.web.endpoint,
        "plugins": {PAGES: {}},
        "auth": Passwords({name: secret_of(folder, name) for name in farm.users}),
        "authz": Gate(farm.users),
    }
