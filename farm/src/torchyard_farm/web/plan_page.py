"""The page of a plan: its progress, its failures, and a grid of all its cells."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape

from torchyard.model.quantity import show_count, show_duration
from torchyard.model.recipe import CELL_STAGES
from torchyard_farm.web.grid import Grid, GridBlock, GridRow
from torchyard_farm.web.history import History
from torchyard_farm.web.markup import (
    BUILDBOT,
    PageView,
    breakable_path,
    count_text,
    progress_bar,
    state_chip,
    time_tag,
)
from torchyard_farm.web.progress import GOOD, TROUBLE, PlanProgress, TaskState, seconds_left

_MOST = 600
"""The number of tasks above which blocks are folded, except those with failures."""

LISTED = 50
"""Maximum number of listed failures and running jobs."""

_MINUTE = 60
_DIGITS = 6


def wanted_blocks(words: Iterable[bytes]) -> frozenset[int]:
    """Return the numbers of the blocks in a request; ignore anything else.

    The length is limited, as Python refuses to parse thousands of digits.
    """
    return frozenset(int(word) for word in words if word.isdigit() and len(word) <= _DIGITS)


def shown_blocks(progress: PlanProgress, grid: Grid, wanted: Collection[int]) -> set[int]:
    """Return the unfolded blocks: all of a small plan, else wanted ones and some with failures."""
    if len(progress.plan.tasks) <= _MOST:
        return set(range(len(grid.blocks)))
    shown = {number for number in wanted if 0 <= number < len(grid.blocks)}
    room = _MOST
    for number, block in enumerate(grid.blocks):
        tasks = block.tasks
        if len(tasks) <= room and any(progress.states[task] in TROUBLE for task in tasks):
            shown.add(number)
            room -= len(tasks)
    return shown


def plan_view(
    progress: PlanProgress,
    grid: Grid,
    shown: Collection[int],
    history: History,
    now: int,
) -> PageView:
    """Return the page, with some of its blocks unfolded."""
    page = _Page(progress, grid, history)
    counts = progress.counts
    parts = {
        "totals": page.totals(now),
        "failures": page.failures(),
        "running": page.running(),
        "shared": page.shared(),
    }
    for number, block in enumerate(grid.blocks):
        parts[f"b{number}"] = page.block(number, block, unfolded=number in shown)
    body = (
        f"<h1>{breakable_path(progress.plan.id)}</h1>\n"
        f'<section id="totals" aria-label="Progress">{parts["totals"]}</section>\n'
        f'<section id="failures" aria-label="Failures">{parts["failures"]}</section>\n'
        f'<section id="running" aria-label="Running jobs">{parts["running"]}</section>\n'
        f'<section id="shared" aria-label="Jobs for all cells">{parts["shared"]}</section>\n'
        f"{_table(grid, parts)}\n"
    )
    trouble = count_text(counts, TROUBLE)
    news = trouble or ("all jobs are done" if _is_done(counts) else "")
    return PageView(progress.plan.id, body, parts, news, not progress.is_over)


def _is_done(counts: Mapping[TaskState, int]) -> bool:
    return not any(counts.get(state) for state in TaskState if state not in GOOD)


def _table(grid: Grid, parts: Mapping[str, str]) -> str:
    """Return the grid: a head, and a part for each block."""
    if not grid.blocks:
        return ""
    keys = (f"b{number}" for number in range(len(grid.blocks)))
    bodies = "\n".join(f'<tbody id="{key}">{parts[key]}</tbody>' for key in keys)
    first = [column for column in grid.columns if not column.package]
    packages: dict[str, int] = Counter(c.package for c in grid.columns if c.package)
    heads = "".join(f'<th scope="col" rowspan="2">{column.stage}</th>' for column in first)
    groups = "".join(
        f'<th scope="colgroup" colspan="{span}">{escape(name)}</th>'
        for name, span in packages.items()
    )
    stages = "".join(
        f'<th scope="col">{column.stage}</th>' for column in grid.columns if column.package
    )
    return (
        '<h2 id="cells">Cells</h2>\n'
        '<div class="scroll" role="region" aria-labelledby="cells" tabindex="0">\n'
        '<table><thead><tr><th scope="col" rowspan="2" class="corner">cell</th>'
        f"{heads}{groups}</tr>"
        f"<tr>{stages}</tr></thead>\n{bodies}\n</table></div>"
    )


class _Page:
    """Writes the parts of one page."""

    def __init__(self, progress: PlanProgress, grid: Grid, history: History) -> None:
        self._progress = progress
        self._grid = grid
        self._pages = history.pages
        self._streaks = history.streaks

    def totals(self, now: int) -> str:
        counts = self._progress.counts
        sent = sum(counts.values()) - counts[TaskState.CACHED]
        headline = f"{counts[TaskState.DONE]:,} of {show_count(sent, 'job')} done"
        left = None if self._progress.is_over else seconds_left(self._progress, now)
        if left is not None and counts[TaskState.DONE] < sent:
            time = "less than a minute" if left < _MINUTE else f"about {show_duration(left)}"
            headline += f", {time} left at this pace"
        if self._progress.is_over:
            headline += ". This plan is over"
        found = [state for state in TaskState if counts[state]]
        items = "".join(f"<li>{state_chip(state)} {counts[state]:,}</li>" for state in found)
        strip = progress_bar(counts, f"{headline}: {count_text(counts, found)}")
        return f'<p class="headline">{headline}.</p>{strip}<ul class="legend">{items}</ul>'

    def failures(self) -> str:
        bad = self._progress.trouble
        if not bad:
            return ""
        blocked = self._progress.counts[TaskState.BLOCKED]
        waits = f" {show_count(blocked, 'job')} can't start before that." if blocked else ""
        hint = f"<p>Press <em>Rebuild</em> on the page of a job to try it again.{waits}</p>"
        return f"<h2>{show_count(len(bad), 'failure')}</h2>{hint}{self._list(bad)}"

    def running(self) -> str:
        """Return the running jobs, the longest first."""
        attempts = self._progress.attempts
        busy = [n for n, state in enumerate(self._progress.states) if state is TaskState.RUNNING]
        busy.sort(key=lambda task: attempts[task].began or 0)
        return f"<h2>Running</h2>{self._list(busy)}" if busy else ""

    def _list(self, tasks: Sequence[int]) -> str:
        items = "".join(map(self._item, tasks[:LISTED]))
        more = len(tasks) - LISTED
        rest = f"<p>{more:,} more are in the grid.</p>" if more > 0 else ""
        return f"<ol>{items}</ol>{rest}"

    def _item(self, task: int) -> str:
        job = self._progress.plan.tasks[task]
        last = self._progress.attempts[task]
        state = self._progress.states[task]
        name = breakable_path(job.id)
        link = f'<a id="f{task}" href="{self._href(task)}">{name}</a>' if self._href(task) else name
        facts = [f"on {escape(last.worker)}"] if last.worker else []
        if task in self._streaks:
            since, times = self._streaks[task]
            facts.append(f"since {time_tag(since)}")
            facts += [f"{times:,} times in a row"] if times > 1 else []
        elif state is TaskState.RUNNING and last.began is not None:
            facts.append(f"since {time_tag(last.began)}")
        if task in self._pages:
            href = f"{BUILDBOT}#/builders/{self._pages[task]}"
            label = escape(f"History of {job.id}")
            facts.append(f'<a id="h{task}" href="{href}" aria-label="{label}">history</a>')
        text = f'<p class="why">{escape(last.text)}</p>' if last.text else ""
        return f'<li>{link} {state_chip(state)}{text}<p class="soft">{", ".join(facts)}</p></li>'

    def shared(self) -> str:
        """Return the jobs without a cell: the source, and publish jobs."""
        tasks = self._progress.plan.tasks
        items = "".join(
            f"<li>{escape(tasks[task].id.partition(':')[0])} "
            f"{breakable_path(tasks[task].scope)} {self._chip(task)}</li>"
            for task in self._grid.shared
        )
        return f'<ul class="legend">{items}</ul>' if items else ""

    def block(self, number: int, block: GridBlock, *, unfolded: bool) -> str:
        tasks = block.tasks
        counts = Counter(self._progress.states[task] for task in tasks)
        good = sum(counts[state] for state in GOOD)
        name = f"{breakable_path(block.name)} <small>{good:,} of {len(tasks):,} done</small>"
        head = f'<th scope="rowgroup">{name}</th>'
        if unfolded:
            cells = "".join(self._cells(block.cells))
            lines = "".join(map(self._line, block.lines))
            return f'<tr class="block">{head}{cells}</tr>\n{lines}'
        span = len(self._grid.columns)
        label = escape(f"Show the jobs of {block.name}")
        link = f'<a id="s{number}" href="?show={number}#b{number}" aria-label="{label}">show</a>'
        strip = progress_bar(counts, f"{block.name}: {count_text(counts, TaskState)}")
        return (
            f'<tr class="block">{head}<td colspan="{span}"><div class="folded">{strip}'
            f"<span>{count_text(counts, TaskState)}</span> {link}</div></td></tr>\n"
        )

    def _line(self, line: GridRow) -> str:
        return f'<tr><th scope="row">{escape(line.name)}</th>{"".join(self._cells(line))}</tr>\n'

    def _cells(self, line: GridRow) -> Iterator[str]:
        for column, task in zip(self._grid.columns, line.tasks, strict=True):
            edge = ' class="first"' if column.stage is CELL_STAGES[0] else ""
            yield f"<td{edge}>{'' if task is None else self._chip(task)}</td>"

    def _chip(self, task: int) -> str:
        state = self._progress.states[task]
        last = self._progress.attempts.get(task)
        facts = [last.text, last.worker] if last else []
        job = self._progress.plan.tasks[task]
        return state_chip(
            state,
            href=self._href(task),
            key=f"t{task}",
            label=f"{job.id}: {state}",
            title=", ".join(filter(None, facts)),
        )

    def _href(self, task: int) -> str:
        """Return the address of a job's build, else of its history page, else an empty string."""
        last = self._progress.attempts.get(task)
        if last is not None and last.build is not None:
            return f"{BUILDBOT}#/builders/{last.builder}/builds/{last.build}"
        if task in self._pages:
            return f"{BUILDBOT}#/builders/{self._pages[task]}"
        return ""
