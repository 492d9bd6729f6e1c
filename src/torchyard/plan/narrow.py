"""Choosing jobs of a plan by glob."""

from torchyard.errors import SelectionError
from torchyard.model.matrix import any_match
from torchyard.plan.graph import Plan
from torchyard.plan.select import Selection


def select_jobs(plan: Plan, selection: Selection) -> Plan:
    """Apply the selectors that name jobs; what they need comes along, what needs them goes."""
    wanted = [selector for selector in selection.select if ":" in selector]
    unwanted = [selector for selector in selection.skip if ":" in selector]
    if not wanted and not unwanted:
        return plan
    gone: set[int] = set()
    kept = []
    for job in plan.jobs():
        if any_match(job.identifier, unwanted) or gone.intersection(job.inputs):
            gone.add(job.number)
        elif not wanted or any_match(job.identifier, wanted):
            kept.append(job.number)
    if not kept:
        msg = f"no job matches {' or '.join(wanted) or 'what is left after --skip'}"
        raise SelectionError(msg, hint="`torchyard plan --json` lists the jobs")
    return plan.keep(kept)
