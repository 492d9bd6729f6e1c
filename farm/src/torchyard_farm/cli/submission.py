"""From a configuration to a submitted plan, for all commands that submit plans."""

from pathlib import Path
from typing import NamedTuple

from torchyard.engines.admission import refuse_project
from torchyard.engines.builtin.local import check_steps
from torchyard.errors import Diagnostic, PlanError
from torchyard.model.recipe import Stage
from torchyard.plan.graph import Plan
from torchyard.run.job import run_job
from torchyard.store.store import Store
from torchyard.terminal.console import say
from torchyard.terminal.events import printer
from torchyard.workspace.build_request import BuildRequest
from torchyard.workspace.plan import refuse_proof
from torchyard.workspace.run import job_conditions
from torchyard_farm.scheduling.job_classes import machines_by_class, why_impossible
from torchyard_farm.scheduling.plans import FarmPlan, Plans, farm_plan, plan_name
from torchyard_farm.settings.farm import Farm


class PlanDraft(NamedTuple):
    """A plan, and the part of it that has no results yet."""

    plan: Plan
    farmed: FarmPlan
    store: Store


def draft_plan(wanted: BuildRequest, moment: str, schedule: str = "") -> PlanDraft:
    """Make a plan, without jobs whose results are in the store."""
    plan = wanted.plan()
    return draft_from_plan(plan, wanted.open_store(plan.config), moment, schedule)


def draft_from_plan(plan: Plan, store: Store, moment: str, schedule: str = "") -> PlanDraft:
    """Return the part of a plan without results in the store."""
    stored = store.known(plan.fingerprints)
    name = plan_name(plan, moment, schedule)
    return PlanDraft(plan, farm_plan(plan, stored, name=name, store=store.url), store)


def submit_draft(made: PlanDraft, file: str, folder: Path, farm: Farm) -> FarmPlan:
    """Submit a draft of a file to the master in a directory, unless it has no jobs."""
    left = {planned.task for planned in made.farmed.jobs}
    check_steps(made.plan, left)
    refuse_proof(made.plan.config, file)
    refuse_project(made.plan, left, file)
    refuse_impossible(made.farmed, farm)
    farmed = made.farmed
    if _brings_source(made, file):
        stored = made.store.known(made.plan.fingerprints)
        farmed = farm_plan(made.plan, stored, name=farmed.id, store=farmed.store)
    if farmed.jobs:
        Plans(folder).add(farmed)
    return farmed


def _brings_source(made: PlanDraft, file: str) -> bool:
    """Put a source that workers can't get into the store; return whether that was necessary.

    Workers can't read files of this machine, and may lack the root that gets source packages.
    """
    plan, farmed, store = made
    source = plan.config.source
    if source.file is None and source.debian is None:
        return False
    for number in range(len(farmed.jobs)):
        if farmed.task(number).stage is Stage.SOURCE:
            spec = farmed.spec(number)
            run_job(spec, store, job_conditions(spec, file, None, None), printer(say))
            return True
    return False


def refuse_impossible(plan: FarmPlan, farm: Farm) -> None:
    """Refuse a plan with jobs that no machine can do, as it would wait forever."""
    able = machines_by_class(farm.machines)
    found: dict[str, str] = {}
    for number, job in enumerate(plan.jobs):
        task = plan.task(number)
        why = why_impossible(task, able.get(job.kind, ()))
        if why:
            found.setdefault(why, task.id)
    if found:
        hint = "add a [worker] to farm.toml, or limit the build with a selector, such as cpu"
        faults = [Diagnostic(f"{name}: {why}", hint=hint) for why, name in found.items()]
        raise PlanError.of(faults)
