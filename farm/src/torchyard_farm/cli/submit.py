"""`torchyard farm submit`: a plan for the farm."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchyard.cli.options import set_option, skip_option, store_option, subset_option
from torchyard.errors import Diagnostic, PlanError
from torchyard_farm.cli.options import farm_argument

if TYPE_CHECKING:
    from torchyard.plan.graph import Plan
    from torchyard.store.store import Store
    from torchyard_farm.plans import FarmPlan
    from torchyard_farm.settings import Farm


@click.command("submit")
@farm_argument
@click.argument("select", nargs=-1)
@click.option("-f", "--file", metavar="FILE", help="Configuration, in place of the farm's own.")
@set_option
@subset_option
@skip_option
@store_option
def command(
    *,
    folder: Path,
    select: tuple[str, ...],
    file: str | None,
    changes: tuple[str, ...],
    subset: str | None,
    skip: tuple[str, ...],
    store_url: str | None,
) -> None:
    """Hand a plan, or what SELECT names of it, to the master in DIR, and print its name.

    Jobs whose results the store has are left out. The master builds it when it runs; until then
    the plan waits.
    """
    from torchyard.cli.identified import identified
    from torchyard.cli.places import open_store
    from torchyard.cli.today import current_moment
    from torchyard.config.credentials import take_credentials
    from torchyard.config.load import load_yard
    from torchyard.config.tables import load_tables
    from torchyard.model.quantity import show_count
    from torchyard.plan.build import make_plan
    from torchyard.plan.select import Selection
    from torchyard.report.console import say, write
    from torchyard_farm.plans import Plans, farm_plan, name_of
    from torchyard_farm.settings import load_farm

    farm = load_farm(folder)
    file = file or str(folder / farm.file)
    take_credentials()
    yard = identified(load_yard(file, changes), file)
    plan = make_plan(yard, load_tables(), Selection(subset, select, skip))
    store = open_store(store_url, file, yard)
    known = store.known(plan.columns.fingerprints)
    name = name_of(plan, current_moment())
    farmed = farm_plan(plan, known, name=name, store=store.url)
    _refuse_impossible(farmed, farm)
    if _brings_source(farmed, plan, store, file):
        known = store.known(plan.columns.fingerprints)
        farmed = farm_plan(plan, known, name=name, store=store.url)
    if not farmed.jobs:
        say("the store has all that was asked for")
        return
    Plans(folder).add(farmed)
    say(f"{show_count(len(farmed.jobs), 'job')} of {len(plan):,} have to be done")
    write(f"{name}\n")


def _brings_source(farmed: "FarmPlan", plan: "Plan", store: "Store", file: str) -> bool:
    """Put the source into the store if it is a directory, which no worker can see."""
    from torchyard.cli.run import conditions_of
    from torchyard.model.recipe import Stage
    from torchyard.report.console import say
    from torchyard.report.events import printer
    from torchyard.run.job import run_job

    if plan.yard.source.path is None:
        return False
    for number in range(len(farmed.jobs)):
        if farmed.task(number).stage is Stage.SOURCE:
            order = farmed.order(number)
            run_job(order, store, conditions_of(order, file, None, None), printer(say))
            return True
    return False


def _refuse_impossible(plan: "FarmPlan", farm: "Farm") -> None:
    """Refuse a plan with jobs that no machine can do, instead of waiting for ever."""
    from torchyard_farm.kinds import machines_by_kind, why_not

    able = machines_by_kind(farm.machines)
    found: dict[str, str] = {}
    for number, job in enumerate(plan.jobs):
        task = plan.task(number)
        why = why_not(task, able.get(job.kind, ()))
        if why:
            found.setdefault(why, task.id)
    if found:
        hint = "add a [worker] to farm.toml, or choose what to build: submit DIR SELECT"
        faults = [Diagnostic(f"{name}: {why}", hint=hint) for why, name in found.items()]
        raise PlanError.of(faults)
