"""Select jobs of a plan by glob."""

from torchyard.errors import SelectionError
from torchyard.model.identifier import Cell
from torchyard.model.matrix import matches
from torchyard.model.recipe import CELL_STAGES, Stage
from torchyard.model.suggest import did_you_mean
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import PlanSelection, cell_matches, names_jobs


def select_jobs(plan: Plan, selection: PlanSelection) -> Plan:
    """Apply the selectors that name jobs.

    Inputs of selected jobs are kept, and jobs that need a skipped one are dropped.
    """
    unwanted = [selector for selector in selection.skip if names_jobs(selector)]
    if not selection.selects_jobs and not unwanted:
        return plan
    found: set[str] = set()
    gone: set[int] = set()
    kept: list[int] = []
    for job in plan.jobs:
        skipped = [selector for selector in unwanted if matches(job.identifier, selector)]
        chosen = [selector for selector in selection.select if _matches(selector, job, plan)]
        found.update(skipped, chosen)
        if skipped or gone.intersection(job.inputs):
            gone.add(job.number)
        elif chosen or not selection.selects_jobs:
            kept.append(job.number)
    asked = (*selection.select, *unwanted) if selection.selects_jobs else unwanted
    for selector in asked:
        if selector not in found:
            _raise_unmatched(selector)
    if not kept:
        msg = "the selection is empty: no job is left"
        raise SelectionError(msg, hint="`torchyard plan --jobs` lists the jobs")
    return plan.keep(kept)


def _matches(selector: str, job: Job, plan: Plan) -> bool:
    if names_jobs(selector):
        return matches(job.identifier, selector)
    return job.stage in CELL_STAGES and cell_matches(Cell(*job.scope), plan.label, selector)


def _raise_unmatched(selector: str) -> None:
    msg = f"`{selector}` matches no job"
    stage = selector.partition(":")[0]
    stages = [known.value for known in Stage]
    hint = did_you_mean(stage, stages) if stage not in stages else None
    raise SelectionError(msg, hint=hint or "`torchyard plan --jobs` lists the jobs")
