"""The configuration of a master, made from `farm.toml`."""

from pathlib import Path
from typing import Any

from buildbot.plugins import util, worker

from torchyard_farm.attempts import Limits
from torchyard_farm.buildbot.affinity import Affinity
from torchyard_farm.buildbot.build import JobBuild
from torchyard_farm.buildbot.calendar import calendar
from torchyard_farm.buildbot.database import Database, database_of
from torchyard_farm.buildbot.desk import Desk
from torchyard_farm.buildbot.gate import Gate, Passwords
from torchyard_farm.buildbot.heartbeat import Heartbeat
from torchyard_farm.buildbot.scheduler import NAME, PlanScheduler
from torchyard_farm.buildbot.step import RunJob
from torchyard_farm.buildbot.tries import Tries
from torchyard_farm.buildbot.web import answer_carefully
from torchyard_farm.kinds import machines_by_kind, window_of
from torchyard_farm.layout import secret_of
from torchyard_farm.plans import PAGES
from torchyard_farm.settings import Farm, Machine, load_farm
from torchyard_farm.tls import endpoint_of

_RETURN = 3
"""A machine has this times the patience to come back, before it counts as taken down."""


def configure(folder: str) -> dict[str, Any]:
    """What Buildbot wants to know: its `BuildmasterConfig`."""
    here = Path(folder).resolve()
    farm = load_farm(here)
    kinds = machines_by_kind(farm.machines)
    tries = Tries()
    builders = _builders(here, farm, kinds, tries)
    clock = calendar(here, farm)
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
        "builders": [*builders, *clock.builders],
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
            Heartbeat(interval=farm.heartbeat, patience=farm.patience, tries=tries),
            Database(),
            Desk(machines=list(farm.machines), folder=str(here), interval=farm.heartbeat),
        ],
    }


def _agents(folder: Path, machine: Machine) -> list[Any]:
    password = secret_of(folder, machine.name)
    facts = {"machine": machine.name, "copies": machine.copies}
    return [
        worker.Worker(name, password, max_builds=1, properties=facts) for name in machine.agents
    ]


def _builders(folder: Path, farm: Farm, kinds: dict[str, list[Machine]], tries: Tries) -> list[Any]:
    limits = Limits(attempts=farm.attempts, pause=farm.pause, back=_RETURN * farm.patience)
    factory = util.BuildFactory([RunJob(folder=str(folder), limits=limits, tries=tries)])
    factory.buildClass = JobBuild
    affinity = Affinity(limits, tries)
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
    answer_carefully()
    return {
        "port": farm.web.endpoint,
        "plugins": {PAGES: {}},
        "auth": Passwords({name: secret_of(folder, name) for name in farm.users}),
        "authz": Gate(farm.users),
    }
