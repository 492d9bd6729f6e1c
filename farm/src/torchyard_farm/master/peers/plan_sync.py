"""Plans on their way between masters: each has all of them, and the database has them in between.

That a plan is over stays in the database for ever. One of which nothing else is there is forgotten:
a master that still has it, as it was away meanwhile, forgets it as well, and never begins it anew.
"""

from collections.abc import Collection, Generator
from contextlib import suppress
from typing import Any

from twisted.internet import defer

from torchyard.errors import HostError
from torchyard_farm.master.db.shared_state import SharedState
from torchyard_farm.scheduling.plan_differences import PlanMark, compare_plans
from torchyard_farm.scheduling.plans import Plans

PLANS = "plans"

Steps = Generator[Any, Any, None]


@defer.inlineCallbacks
def sync_plans(master: Any, plans: Plans) -> Steps:
    """Bring what this master knows to the database, and what others know here."""
    marks = {}
    for mark in PlanMark:
        for name in (yield SharedState(master, mark).names()):
            marks[name] = mark  # the later one wins
    drawer = SharedState(master, PLANS)
    found = compare_plans(plans, (yield drawer.names()), marks)
    for name in found.send:
        with suppress(HostError):  # nobody can read it: it is no use to others
            yield drawer.put(name, plans.text(name))
    for name in found.fetch:
        text = yield drawer.get(name)
        if text is not None:  # else it was forgotten just now
            plans.put(name, text, over=marks.get(name) is PlanMark.ENDED)
    for name in found.cancel:
        plans.cancel(name)
    for name in (*found.end, *found.forget):
        plans.end(name)
    for name in found.forget:
        plans.forget(name)
    for name, mark in found.mark.items():
        yield SharedState(master, mark).put(name, "")


@defer.inlineCallbacks
def withdraw_plans(master: Any, names: Collection[str]) -> Steps:
    """Let all masters forget plans, as far as all can know that they are over."""
    over = yield SharedState(master, PlanMark.ENDED).names()
    for name in sorted(set(names).intersection(over)):
        yield SharedState(master, PLANS).remove(name)
