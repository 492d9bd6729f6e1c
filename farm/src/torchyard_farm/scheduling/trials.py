"""Plans that test the files of a channel, with an independent job for each."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import msgspec

from torchyard import __version__
from torchyard.config.tables import load_tables
from torchyard.index.entry import cell_of
from torchyard.index.section import ANY_PLATFORM
from torchyard.index.sections import fits_of
from torchyard.model.canonical import fingerprint
from torchyard.model.config import Config
from torchyard.model.identifier import ANY_PYTHON, Cell, job_identifier, parse
from torchyard.model.job_spec import Task
from torchyard.model.matrix import Needs
from torchyard.model.recipe import Stage
from torchyard.model.step import Setting
from torchyard.publish.select import Chosen
from torchyard.publish.smoke_targets import packages_under_test
from torchyard.recipes.proof import PUBLISHED
from torchyard.smoke.package_under_test import PackageUnderTest
from torchyard_farm.scheduling.job_classes import job_class
from torchyard_farm.scheduling.plans import FarmPlan, PlannedJob, spell_plan_name
from torchyard_farm.settings.schedules import Daily

_REACH = tuple(
    sorted(
        name
        for word in ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
        for name in (word, word.upper())
    )
)
"""Environment variables for the network's proxy."""

_ANY = "any"


class ChannelTrial(NamedTuple):
    """The common values of a day's jobs."""

    daily: Daily
    config: Config
    moment: str
    store: str


def trial_plan(
    trial: ChannelTrial, chosen: Iterable[Chosen], kinds: Collection[str]
) -> tuple[FarmPlan, dict[str, int]]:
    """Return a plan of the files that machines can test, and the number of others by job class."""
    every = list(_tasks(trial, list(chosen)))
    tasks = tuple(task for task in every if job_class(task) in kinds)
    name = trial.daily.name
    plan = FarmPlan(
        id=spell_plan_name(name, trial.moment, (task.fingerprint for task in tasks), name),
        store=trial.store,
        tasks=tasks,
        jobs=tuple(PlannedJob(task=n, kind=job_class(task)) for n, task in enumerate(tasks)),
        sandbox=trial.config.sandbox,
        trial=name,
    )
    return plan, dict(Counter(kind for task in every if (kind := job_class(task)) not in kinds))


def _tasks(trial: ChannelTrial, chosen: list[Chosen]) -> Iterator[Task]:
    found = packages_under_test(chosen, trial.daily.url)
    for choice, package in zip(chosen, found, strict=True):
        cell = _cell(choice, package)
        task = Task(
            id=job_identifier(Stage.SMOKE, f"{package.name}-{package.version}", cell.path),
            stage=Stage.SMOKE,
            stage_revision=1,
            scope=cell.path,
            recipe=trial.config.project.recipe.name,
            fingerprint="",
            settings=_settings(trial, choice, package),
            needs=trial.config.requirements.get(Stage.SMOKE, Needs()),
        )
        yield msgspec.structs.replace(task, fingerprint=fingerprint(task.payload))


def _cell(choice: Chosen, package: PackageUnderTest) -> Cell:
    """Return the cell that a file was built for, else one from its name."""
    cell = cell_of(choice.entry)
    if cell is not None:
        return cell
    platform, python = next(iter(fits_of(choice.part, choice.entry)), (ANY_PLATFORM, ""))
    compute, _, variant = (choice.entry.variant or package.compute).partition("-")
    return Cell(platform, compute or _ANY, variant or _ANY, python or ANY_PYTHON, package.format)


def _settings(trial: ChannelTrial, choice: Chosen, package: PackageUnderTest) -> dict[str, Setting]:
    smoke = trial.config.smoke
    settings: dict[str, Setting] = {
        PUBLISHED: msgspec.to_builtins(package),
        "due": trial.moment,
        "indexes": trial.daily.extra_index_urls,
        "level": smoke.level,
        "pass_env": _REACH,
        "torchyard": __version__,
    }
    if load_tables().formats[package.format].channels and smoke.channels:
        settings["channels"] = smoke.channels
    cell = choice.entry.cell
    if smoke.tests and cell and _project(cell) == trial.config.project.name:
        settings["tests"] = smoke.tests
    return settings


def _project(cell: str) -> str:
    return parse(cell).label.rpartition("-")[0]
