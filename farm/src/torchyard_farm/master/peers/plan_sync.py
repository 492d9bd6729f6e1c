"""Copies plans between masters through the database they share; each master has all plans.

The mark that a plan is over stays in the database forever. A plan with this mark and without a text
is forgotten: a master that was down meanwhile, and still has it, forgets it instead of starting it
again.
"""

from collections.abc import Collection
from contextlib import suppress

from buildbot.master import BuildMaster

from torchyard.errors import HostError, SelectionError
from torchyard_farm.master.db.shared_state import SharedState
from torchyard_farm.scheduling.plan_differences import PlanMark, compare_plans
from torchyard_farm.scheduling.plans import FarmPlan, Plans, decode_plan
from torchyard_farm.twisted_tools import async_to_deferred

PLANS = "plans"


@async_to_deferred
async def sync_plans(master: BuildMaster, plans: Plans) -> None:
    """Copy plans and their marks in both directions between this master and the database."""
    marks = {}
    for mark in PlanMark:
        for name in await SharedState(master, mark).names():
            marks[name] = mark  # the later mark wins
    shared = SharedState(master, PLANS)
    found = compare_plans(plans, await shared.names(), marks)
    for name in found.send:
        with suppress(HostError):  # other masters can't use an unreadable plan
            await shared.put(name, plans.text(name))
    for name in found.fetch:
        text = await shared.get(name)
        if text is not None:  # else it was just forgotten
            plans.put(name, text, over=marks.get(name) is PlanMark.ENDED)
    for name in found.cancel:
        plans.cancel(name)
    for name in (*found.end, *found.forget):
        plans.end(name)
    for name in found.forget:
        plans.forget(name)
    for name, mark in found.mark.items():
        await SharedState(master, mark).put(name, "")


async def withdraw_plans(master: BuildMaster, names: Collection[str]) -> None:
    """Let all masters forget plans that are over according to the database."""
    over = await SharedState(master, PlanMark.ENDED).names()
    for name in sorted(set(names).intersection(over)):
        await SharedState(master, PLANS).remove(name)


async def find_plan(master: BuildMaster, plans: Plans, name: str) -> FarmPlan:
    """Return a plan, even one just submitted to another master."""
    try:
        return plans.read(name)
    except SelectionError:
        text = await SharedState(master, PLANS).get(name)
        if text is None:
            raise
        return decode_plan(text)
