"""The page that lists open and recently ended plans."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import quote

from torchyard_farm.web.markup import PageView, breakable_path, progress_bar, time_tag
from torchyard_farm.web.progress import TaskState


class ListedPlan(NamedTuple):
    """A plan in the list, with the numbers of its jobs: all, done, failed and submitted."""

    name: str
    at: int
    jobs: int
    good: int = 0
    bad: int = 0
    out: int = 0
    is_over: bool = False

    @property
    def state(self) -> str:
        if not self.jobs:
            return "unreadable"
        if self.good == self.jobs:
            return "done"
        if self.is_over:
            return "cancelled"
        return "failed" if self.bad and not self.out else "building"


def list_view(plans: Sequence[ListedPlan], more: int) -> PageView:
    """Return the page; `more` ended plans are not listed."""
    now = [plan for plan in plans if not plan.is_over]
    over = [plan for plan in plans if plan.is_over]
    rest = f"<p>{more:,} older ones are not listed.</p>" if more else ""
    none = "<p>None. <code>torchyard farm submit</code> submits one.</p>"
    parts = {
        "open": "<h2>Open</h2>" + (_items(now) or none),
        "ended": f"<h2>Over</h2>{_items(over)}{rest}" if over else "",
    }
    body = (
        "<h1>Plans</h1>\n"
        f'<section id="open" aria-label="Plans that are open">{parts["open"]}</section>\n'
        f'<section id="ended" aria-label="Plans that are over">{parts["ended"]}</section>\n'
    )
    failed = sum(plan.bad > 0 for plan in now)
    return PageView("Plans", body, parts, f"{failed} with failures" if failed else "", is_live=True)


def _items(plans: Sequence[ListedPlan]) -> str:
    newest = sorted(plans, key=lambda plan: plan.at, reverse=True)
    return f'<ul class="plans">{"".join(map(_item, newest))}</ul>' if plans else ""


def _item(plan: ListedPlan) -> str:
    left = plan.jobs - plan.good - plan.bad - plan.out
    rest = TaskState.CANCELLED if plan.is_over else TaskState.WAITING
    counts = {
        TaskState.DONE: plan.good,
        TaskState.FAILED: plan.bad,
        TaskState.RUNNING: plan.out,
        rest: left,
    }
    facts = [f"{plan.good:,} of {plan.jobs:,} done"]
    facts += [f"{plan.bad:,} failed"] if plan.bad else []
    facts += [f"{plan.out:,} out"] if plan.out else []
    href = escape(quote(plan.name, safe=""))
    return (
        f'<li><a id="p-{href}" href="{href}">{breakable_path(plan.name)}</a> '
        f'<strong class="p-{plan.state}">{plan.state}</strong>'
        f"{progress_bar(counts, ', '.join(facts))}"
        f'<p class="soft">{", ".join(facts)}; submitted {time_tag(plan.at)}</p></li>'
    )
