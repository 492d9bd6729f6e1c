"""Plans, differences and explanations as people read them."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.model.recipe import Stage
from torchyard.plan.diff import Cause, Change, Differences, PlanDiff
from torchyard.plan.estimate import Estimate, estimate
from torchyard.plan.expand import UNAVAILABLE
from torchyard.plan.explain import CellStory, ingredients
from torchyard.plan.graph import Job, Plan
from torchyard.plan.summary import Summary, summarize

SHORT = 12
"""How many digits of a fingerprint people need to tell two apart."""

_LISTED = 12
"""How many packages a difference names for one cause before it only counts the others."""


def _table(*, header: bool = True) -> Table:
    return Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=header, header_style="bold"
    )


def plan_report(plan: Plan) -> RenderableType:
    """The whole plan on a screen."""
    summary = summarize(plan)
    project = plan.yard.project
    what = f"{project.name} {project.version}"
    subset = f", subset {plan.subset}" if plan.subset else ""
    selected = ", selected" if plan.partial else ""
    title = Text.assemble(
        (what, "bold"),
        f" (recipe {project.recipe.name}{subset}{selected}): ",
        (f"{show_count(summary.total, 'package')}, {show_count(len(plan), 'job')}", "bold"),
    )
    parts: list[RenderableType] = [title, "", _packages(summary), "", _dimensions(summary)]
    parts += ["", _stages(summary), "", _sharing(summary)]
    guess = estimate(plan)
    if guess.timed:
        parts.append(_estimate(guess))
    if plan.expansion.absent:
        parts += ["", _excluded(plan)]
    return Group(*parts)


def _packages(summary: Summary) -> Table:
    table = _table()
    table.padding = (0, 1, 0, 0)  # six package kinds fit into 60 columns
    table.add_column("platform", no_wrap=True)
    for package in summary.packages:
        table.add_column(package.replace("-", "-\n"), justify="right", no_wrap=True)
    for platform, counts in summary.platforms.items():
        table.add_row(platform, *(f"{counts.get(p, 0) or '·'}" for p in summary.packages))
    totals = (f"{count:,}" for count in summary.packages.values())
    table.add_row("total", *totals, style="bold")
    return table


def _dimensions(summary: Summary) -> Table:
    table = _table()
    table.add_column("dimension", no_wrap=True)
    table.add_column("packages with each value")
    for dimension, counts in summary.dimensions.items():
        if dimension not in ("platform", "package"):
            listed = ", ".join(f"{value} {count:,}" for value, count in counts.items())
            table.add_row(dimension, listed)
    return table


def _stages(summary: Summary) -> Table:
    table = _table()
    table.add_column("stage", no_wrap=True)
    table.add_column("jobs", justify="right")
    table.add_column("what")
    compiled = "an extension" if Stage.CORE not in summary.stages else "the Python part"
    meaning = {
        Stage.SOURCE: "one snapshot for everything",
        Stage.CORE: "one for all Pythons and formats",
        Stage.BINDINGS: f"{compiled}, one for all formats",
        Stage.PACKAGE: "one for each package",
        Stage.CHECK: "X-ray of each package",
        Stage.SMOKE: "each package installed and tried",
        Stage.PUBLISH: "one for each channel of this plan",
    }
    for stage, count in summary.stages.items():
        table.add_row(stage.value, f"{count:,}", meaning[stage])
    return table


def _sharing(summary: Summary) -> Text:
    return Text.assemble(
        ("sharing: ", "bold"),
        f"{show_count(summary.compilations, 'compilation')} instead of {summary.total:,}, "
        f"{summary.saved:,} saved ({summary.factor:.1f} packages from each)",
    )


def _estimate(guess: Estimate) -> Text:
    covered = (
        "" if guess.timed == guess.jobs else f" ({guess.timed:,} of {guess.jobs:,} jobs known)"
    )
    text = (
        f"{show_duration(guess.machine_time)} of machine time{covered}, "
        f"{show_duration(guess.longest_path)} if nothing waits"
    )
    largest = [
        f"{show_size(amount)} {what}"
        for amount, what in ((guess.memory, "memory"), (guess.disk, "disk"))
        if amount
    ]
    if largest:
        text += f"; the largest job wants {', '.join(largest)}"
    return Text.assemble(("estimate: ", "bold"), text)


def _excluded(plan: Plan) -> Table:
    table = _table()
    table.add_column("left out", justify="right", no_wrap=True)
    table.add_column("why")
    table.add_column("where", no_wrap=True)
    excluded = dict(sorted(plan.excluded().items(), key=lambda item: item[0].origin.line))
    impossible = [absence for absence in excluded if absence.origin == UNAVAILABLE]
    for absence, cells in excluded.items():
        if absence not in impossible:
            table.add_row(f"{len(cells):,}", absence.reason, str(absence.origin))
    if impossible:
        count = sum(len(excluded[absence]) for absence in impossible)
        table.add_row(f"{count:,}", f"does not exist: {_such_as(impossible)}", str(UNAVAILABLE))
    return table


def _such_as(impossible: Sequence[tuple[str, object]]) -> str:
    first = impossible[0][0]
    others = len(impossible) - 1
    return f"{first}, and {others} more such pairs" if others else first


def diff_report(diff: PlanDiff) -> RenderableType:
    """What changes, grouped by the line that causes it."""
    parts: list[RenderableType] = []
    for title, sign, style, changes in (
        ("gone", "-", "red", diff.vanished),
        ("new", "+", "green", diff.appeared),
        ("to rebuild", "~", "yellow", diff.rebuilt),
    ):
        if changes:
            what = f"{show_count(len(changes), 'package')} {title}"
            parts.append(Text(what, style=f"bold {style}"))
            parts += _by_cause(changes, sign, style)
    parts.append(Text(f"{show_count(diff.unchanged, 'package')} unchanged", style="bold"))
    return Group(*parts)


def _by_cause(changes: Iterable[Change], sign: str, style: str) -> Iterable[RenderableType]:
    groups: dict[tuple[Cause, ...], list[Change]] = {}
    for change in changes:
        groups.setdefault(change.causes, []).append(change)
    for causes, group in groups.items():
        for cause in causes:
            yield Text.assemble(("  because ", "dim"), cause.what, (f" ({cause.origin})", "dim"))
        for change in group[:_LISTED]:
            yield Text.assemble((f"    {sign} ", style), change.identifier, overflow="fold")
        if len(group) > _LISTED:
            yield Text(f"      and {len(group) - _LISTED:,} more (all with --json)", style="dim")
        yield ""


def cell_report(plan: Plan, story: CellStory, against: Differences | None) -> RenderableType:
    """Why a cell exists or not, and how it is made."""
    name = Text(f"{plan.label}/{story.cell.path}", style="bold", overflow="fold")
    if story.absence:
        verdict = Text.assemble(("is not planned", "bold red"), f": {story.absence.reason}")
        where = Text(f"decided at {story.absence.origin}", style="dim")
        return Group(name, verdict, where)
    lines: list[RenderableType] = [name, Text("is planned", style="bold green"), ""]
    admitted = _table()
    for column in ("admitted by", "value", "where"):
        admitted.add_column(column, overflow="fold")
    for item in story.admitted_by:
        admitted.add_row(item.name, item.value, str(item.origin))
    lines += [admitted, "", f"subsets: {', '.join(story.subsets) or 'none'}"]
    if story.overrides:
        origins = ", ".join(str(override.origin) for override in story.overrides)
        lines.append(f"overrides: {origins}")
    jobs = _table()
    jobs.add_column("job", no_wrap=True)
    jobs.add_column("fingerprint", no_wrap=True)
    jobs.add_column("makes", justify="right", no_wrap=True)
    for job in story.jobs:
        count = plan.packages_of(job)
        shared = show_count(count, "package") if count > 1 else "this one"
        jobs.add_row(job.stage.value, job.fingerprint[:SHORT], shared)
    lines += ["", jobs]
    if against:
        lines += ["", _causes(against.causes(Stage.PACKAGE, story.cell.path))]
    return Group(*lines)


def job_report(plan: Plan, job: Job, against: Differences | None) -> RenderableType:
    """What a job's fingerprint is made of."""
    count = plan.packages_of(job)
    lines: list[RenderableType] = [
        Text(job.identifier, style="bold", overflow="fold"),
        f"fingerprint {job.fingerprint}",
    ]
    if count:
        lines.append(f"its result goes into {show_count(count, 'package')}")
    table = _table()
    table.add_column("made of", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("where", overflow="fold")
    for item in ingredients(plan, job):
        value = item.value[:SHORT] if item.name == "input" else item.value
        table.add_row(item.name, value, str(item.origin))
    lines += ["", table]
    if against:
        lines += ["", _causes(against.causes(job.stage, job.path))]
    return Group(*lines)


def _causes(causes: Sequence[Cause]) -> RenderableType:
    if not causes:
        return Text("unchanged: the fingerprint is the same as before", style="bold green")
    lines = [Text("changed, because", style="bold yellow")]
    lines += [Text.assemble(f"  {cause.what} ", (f"({cause.origin})", "dim")) for cause in causes]
    return Group(*lines)


def settings_report(rows: Iterable[tuple[str, str, str]]) -> RenderableType:
    """Key, value and origin of every setting."""
    table = _table()
    for column in ("key", "value", "from"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
