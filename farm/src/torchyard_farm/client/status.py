"""The status of a farm, from its master's web API."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table

from torchyard.errors import HostError
from torchyard.model.quantity import show_count
from torchyard.model.values import Reported
from torchyard.terminal.untrusted import printable
from torchyard_farm.client.runs import RunState, newest_builds, read_runs, runs_report
from torchyard_farm.client.web_api import FAILED, GOOD, MasterClient, track_plan
from torchyard_farm.scheduling.attempts import FINAL_VERDICTS
from torchyard_farm.scheduling.plans import FarmPlan, Plans
from torchyard_farm.scheduling.worker_status import WorkerStatus, shortfalls
from torchyard_farm.settings.dates import format_moment
from torchyard_farm.settings.farm import Farm
from torchyard_farm.settings.schedules import Daily
from torchyard_farm.web.history import failure_streak

_MANY = 400
"""Maximum number of builds to read: more than a year of days."""


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
    seen.update(plan.page(job.job) for job in submitted if job.complete)
    return fresh


def failing_report(failing: Sequence[FailingState]) -> RenderableType:
    """Return a table of the failing packages."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    for package in failing:
        often = f", {package.times:,} times in a row" if package.times > 1 else ""
        grid.add_row("", "")
        grid.add_row("failing", package.job)
        grid.add_row("", f"since {package.since[:10]}{often} ({package.daily})")
    return grid


_LATEST = 500
"""Maximum number of failed builds to read for held jobs."""


class WorkerState(Reported, kw_only=True):
    """A worker of a machine; `lacks` are resources below those in `farm.toml`."""

    name: str
    machine: str
    connected: bool
    lacks: tuple[str, ...]


class HeldJob(Reported, kw_only=True):
    """A job that is not attempted again until a user has investigated.

    `verdict` is `quarantined` if machines were lost with it, or `given up`.
    """

    job: str
    verdict: str
    why: str


class PlanState(Reported, kw_only=True):
    """The progress of a plan: how many jobs it has, ended, pending and running."""

    id: str
    jobs: int
    good: int
    bad: int
    out: int
    failed: tuple[str, ...]
    held: tuple[HeldJob, ...]


class UnreadablePlan(Reported, kw_only=True):
    """A plan with an unreadable file, which the master skips. `hint` is what to do."""

    id: str
    why: str
    hint: str


class Status(Reported, kw_only=True):
    """The output of `farm status --json`."""

    version: Literal[1]
    workers: tuple[WorkerState, ...]
    plans: tuple[PlanState, ...]
    unreadable: tuple[UnreadablePlan, ...]
    runs: tuple[RunState, ...]
    failing: tuple[FailingState, ...]


class _Build(msgspec.Struct):
    state_string: str
    properties: dict[str, tuple[object, str]]

    def of(self, name: str) -> str:
        return str(self.properties.get(name, ("", ""))[0])


class _Builds(msgspec.Struct):
    builds: list[_Build]


def read_status(
    farm: Farm, plans: Plans, statuses: Mapping[str, WorkerStatus], now: datetime
) -> Status:
    """Return the status of a farm."""
    master = MasterClient(farm)
    connected = master.workers()
    workers = tuple(
        WorkerState(
            name=name,
            machine=machine.name,
            connected=name in connected,
            lacks=shortfalls(machine, statuses.get(machine.name)) if name in connected else (),
        )
        for machine in farm.machines
        for name in machine.worker_names
    )
    found, unreadable = _read_open(plans)
    return Status(
        version=1,
        workers=workers,
        plans=tuple(_plan_state(master, plan) for plan in found),
        unreadable=tuple(unreadable),
        runs=tuple(read_runs(farm.schedules, now, master.read)),
        failing=tuple(read_failing(farm.dailies, plans, master)),
    )


def _read_open(plans: Plans) -> tuple[list[FarmPlan], list[UnreadablePlan]]:
    """Return the plans that are being built, and the unreadable ones."""
    found, unreadable = [], []
    for name in plans.open():
        try:
            found.append(plans.read(name))
        except HostError as error:
            (fault,) = error.diagnostics
            unreadable.append(UnreadablePlan(id=name, why=fault.what, hint=fault.hint or ""))
    return found, unreadable


def _plan_state(master: MasterClient, plan: FarmPlan) -> PlanState:
    tracker = track_plan(plan, master.submitted(plan.id))
    counts = tracker.counts(plan.id)
    failed = tuple(plan.task(job).id for job in tracker.failed(plan.id))
    return PlanState(
        id=plan.id,
        jobs=counts.jobs,
        good=counts.good,
        bad=counts.bad,
        out=counts.out,
        failed=failed,
        held=tuple(_held(master, plan.id, failed)) if failed else (),
    )


def _held(master: MasterClient, plan: str, failed: Collection[str]) -> Iterator[HeldJob]:
    """Return the failed jobs that the farm has given up on."""
    names = "".join(f"&property={name}" for name in ("plan", "task", "verdict"))
    path = f"builds?results={FAILED}&order=-buildid&limit={_LATEST}{names}"
    seen: set[str] = set()
    for build in msgspec.json.decode(master.read(path), type=_Builds).builds:
        job, verdict = build.of("task"), build.of("verdict")
        if build.of("plan") == plan and job in failed and job not in seen:
            seen.add(job)
            if verdict in FINAL_VERDICTS:
                yield HeldJob(job=job, verdict=verdict, why=build.state_string)


def status_report(status: Status) -> RenderableType:
    """Return the status as tables."""
    workers = Table(box=None, pad_edge=False)
    for header in ("worker", "machine", ""):
        workers.add_column(header, overflow="fold")
    for worker in status.workers:
        state = "connected" if worker.connected else "not connected"
        lacks = f", but has {' and '.join(worker.lacks)}" if worker.lacks else ""
        workers.add_row(worker.name, worker.machine, state + lacks)
    plans = Table.grid(padding=(0, 2))
    plans.add_column()
    plans.add_column(overflow="fold")
    for plan in status.plans:
        plans.add_row("", "")
        plans.add_row("plan", plan.id)
        plans.add_row("", _how_far(plan))
        held = {held.job: held for held in plan.held}
        for job in plan.failed:
            plans.add_row("failed", job)
            if job in held:
                plans.add_row("", printable(held[job].why))
    for torn in status.unreadable:
        plans.add_row("", "")
        plans.add_row("plan", torn.id)
        plans.add_row("", f"skipped: {printable(torn.why)}")
        plans.add_row("hint", torn.hint)
    shown = plans if plans.row_count else Group("", "no plan is being built")
    return Group(workers, shown, runs_report(status.runs), failing_report(status.failing))


def _how_far(plan: PlanState) -> str:
    counts = [f"{plan.good:,} of {show_count(plan.jobs, 'job')} done"]
    counts += [
        f"{count:,} {word}"
        for count, word in ((plan.out, "submitted"), (plan.bad, "failed"))
        if count
    ]
    waits = plan.bad and not plan.out
    return ", ".join(counts) + (": it waits for Rebuild or cancel" if waits else "")
