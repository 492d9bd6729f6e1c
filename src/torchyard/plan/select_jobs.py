"""Select jobs of a plan."""

from torchyard.errors import SelectionError
from torchyard.model.identifier import Cell
from torchyard.model.recipe import CELL_STAGES, DEPTH, Stage
from torchyard.model.selector import Name, NameSelector
from torchyard.plan.constraints import Scope
from torchyard.plan.graph import Job, Plan
from torchyard.plan.select import ReadSelection


def select_jobs(plan: Plan, selection: ReadSelection) -> Plan:
    """Keep the selected jobs of the selected cells.

    Inputs of selected jobs are kept, and jobs that need a skipped one are dropped.
    """
    if not selection.of_jobs:
        return plan
    is_cells = not selection.select.of_jobs
    chosen = plan.jobs if is_cells else matching_jobs(plan, selection.select)
    wanted = {job.number for job in chosen}
    skips = [matching_jobs(plan, selector) for selector in selection.skip if selector.of_jobs]
    skipped = {job.number for jobs in skips for job in jobs}
    gone: set[int] = set()
    kept: list[int] = []
    for job in plan.jobs:
        if job.number in skipped or gone.intersection(job.inputs):
            gone.add(job.number)
        elif job.number in wanted:
            kept.append(job.number)
    if not kept:
        msg = "the selection is empty: no job is left"
        raise SelectionError(msg, hint="`torchyard plan --list jobs` lists the jobs")
    return plan.keep(kept)


def matching_jobs(plan: Plan, selector: NameSelector, *, or_none: bool = False) -> list[Job]:
    """Return the jobs that a selector names; `core cp312` names the cores that cp312 cells need.

    Without a stage, it names the package jobs of cells.

    Raises:
        SelectionError: There are none.
    """
    below: dict[Scope, list[Cell]] = {}
    for cell in plan.cells():
        for depth in set(DEPTH.values()):
            below.setdefault(cell[:depth], []).append(cell)
    found = []
    for job in plan.jobs:
        is_own = job.stage in (*CELL_STAGES, Stage.PUBLISH)
        scopes: list[Scope] = [job.scope] if is_own else [*below.get(job.scope, ())]
        names = (Name.of(job.stage, plan.label, scope) for scope in scopes)
        is_meant = selector.of_jobs or job.stage is Stage.PACKAGE
        if is_meant and any(map(selector.matches, names)):
            found.append(job)
    if not found and not or_none:
        raise selector.nothing()
    return found
