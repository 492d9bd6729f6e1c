"""Published packages that do not work, and since when, from the master's history."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice

from rich.console import RenderableType
from rich.table import Table

from torchyard.model.values import Reported
from torchyard_farm.client.runs import newest_builds
from torchyard_farm.client.web_api import FAILED, GOOD, MasterClient, track_plan
from torchyard_farm.scheduling.plans import FarmPlan, Plans
from torchyard_farm.settings.dates import format_moment
from torchyard_farm.settings.schedules import Daily
from torchyard_farm.web.history import failure_streak

_MANY = 400
"""Maximum number of builds that are read: more than a year of days."""


class FailingState(Reported, kw_only=True):
    """A package that can't be installed or does not work: since when, and how often in a row."""

    daily: str
    job: str
    page: str
    since: str
    times: int


def read_failing(
    dailies: Sequence[Daily], plans: Plans, master: MasterClient
) -> Iterator[FailingState]:
    """Return the packages that failed their last trial, today or else the day before."""
    for daily in dailies:
        seen: set[str] = set()
        for plan in islice(plans.past(daily.name), 2):
            for page, job in sorted(_failed(plan, master, seen).items()):
                streak = failure_streak(_past(page, master))
                if streak is not None:
                    yield FailingState(
                        daily=daily.name,
                        job=job,
                        page=page,
                        since=format_moment(datetime.fromtimestamp(streak.since, UTC)),
                        times=streak.times,
                    )


def _past(page: str, master: MasterClient) -> Iterator[tuple[bool, int]]:
    for build in newest_builds(page, master.read, limit=_MANY):
        # A cancelled or abandoned trial says nothing about the package.
        if build.complete_at is not None and build.results in (*GOOD, FAILED):
            yield build.results in GOOD, build.complete_at


def _failed(plan: FarmPlan, master: MasterClient, seen: set[str]) -> dict[str, str]:
    """Return failed jobs by page, without pages that a newer plan has `seen`; adds to `seen`."""
    submitted = master.submitted(plan.id)
    tracker = track_plan(plan, submitted)
    failed = {plan.page(job): plan.task(job).id for job in tracker.failed(plan.id)}
    fresh = {page: job for page, job in failed.items() if page not in seen}
    seen.update(plan.page(one.job) for one in submitted if one.complete)
    return fresh


def failing_report(failing: Sequence[FailingState]) -> RenderableType:
    """Return a table of the failing packages."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    for one in failing:
        often = f", {one.times:,} times in a row" if one.times > 1 else ""
        grid.add_row("", "")
        grid.add_row("failing", one.job)
        grid.add_row("", f"since {one.since[:10]}{often} ({one.daily})")
    return grid
