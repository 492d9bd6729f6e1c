"""The last and next runs of schedules, from the master's history."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Literal
from urllib.parse import quote

import msgspec
from rich.console import RenderableType
from rich.table import Table

from torchyard.model.values import Reported
from torchyard.terminal.untrusted import printable
from torchyard_farm.client.web_api import GOOD
from torchyard_farm.settings.dates import format_moment, next_run, parse_moment
from torchyard_farm.settings.schedules import Schedule, schedule_command, schedule_page

Ask = Callable[[str], bytes]
"""A function that returns the master's answer for a path of its web API."""

Outcome = Literal["running", "good", "bad"]


class RunState(Reported, kw_only=True):
    """A nightly or a daily trial: when its last run was due, how it ended, and the next run."""

    kind: Literal["nightly", "daily"]
    name: str
    next: str
    last: str | None
    outcome: Outcome | None
    told: str | None


class HistoryBuild(msgspec.Struct):
    """A build in the history of a page."""

    buildid: int
    complete: bool
    results: int | None
    complete_at: int | None
    properties: dict[str, tuple[msgspec.Raw, str]] = {}

    def text(self, name: str) -> str | None:
        """Return a requested property, or None."""
        found = self.properties.get(name)
        return msgspec.json.decode(found[0], type=str) if found else None


class _Builds(msgspec.Struct):
    builds: list[HistoryBuild]


class _Builder(msgspec.Struct):
    builderid: int


class _Builders(msgspec.Struct):
    builders: list[_Builder]


def read_runs(schedules: Sequence[Schedule], now: datetime, ask: Ask) -> Iterator[RunState]:
    """Return the last and next run of each schedule."""
    for schedule in schedules:
        builds = newest_builds(schedule_page(schedule), ask, limit=1, properties=("due", "told"))
        due = builds[0].text("due") if builds else None
        yield RunState(
            kind=schedule_command(schedule),
            name=schedule.name,
            next=format_moment(next_run(now, schedule.times, parse_moment(due) if due else now)),
            last=due,
            outcome=_outcome(builds[0]) if builds else None,
            told=builds[0].text("told") if builds else None,
        )


def _outcome(build: HistoryBuild) -> Outcome:
    if not build.complete:
        return "running"
    return "good" if build.results in GOOD else "bad"


def newest_builds(
    page: str, ask: Ask, *, limit: int, offset: int = 0, properties: Sequence[str] = ()
) -> list[HistoryBuild]:
    """Return the builds of a history page, newest first."""
    found = msgspec.json.decode(ask(f"builders?name={quote(page, safe='')}"), type=_Builders)
    if not found.builders:
        return []
    wanted = "".join(f"&property={name}" for name in properties)
    path = f"builders/{found.builders[0].builderid}/builds?order=-buildid"
    data = ask(f"{path}&limit={limit}&offset={offset}{wanted}")
    return msgspec.json.decode(data, type=_Builds).builds


def runs_report(runs: Sequence[RunState]) -> RenderableType:
    """Return a table of the runs."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(overflow="fold")
    for run in runs:
        last = _short(run.last) if run.last else "never"
        grid.add_row("", "")
        grid.add_row(run.kind, run.name)
        text = printable(run.told or "")
        grid.add_row("last", " ".join(filter(None, (last, _WORDS[run.outcome], text))))
        grid.add_row("next", _short(run.next))
    return grid


_WORDS: dict[Outcome | None, str] = {"running": "runs", "bad": "failed:", "good": "", None: ""}


def _short(moment: str) -> str:
    """Return a moment to the minute, for tables."""
    return f"{moment.replace('T', ' ')[:16]} UTC"
