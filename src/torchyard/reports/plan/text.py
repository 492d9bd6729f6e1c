"""Plans, differences and explanations, for people."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from torchyard.model.identifier import Cell, scope_of
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.model.recipe import Stage
from torchyard.plan.admission import TABLES, Absence
from torchyard.plan.diff import Cause, FingerprintDiff, PackageChange, PlanDiff
from torchyard.plan.estimate import Estimate, estimate
from torchyard.plan.explain import Explanation, ingredients
from torchyard.plan.graph import Job, Plan
from torchyard.plan.summary import RuleCount, Summary, exclusions, inclusions, own_rows, summarize
from torchyard.terminal.tables import SHORT, folded, number, table, word

_LISTED = 12
"""How many packages or paths are named for one cause before the others are only counted."""


def plan_report(plan: Plan) -> RenderableType:
    """Show the whole plan on a screen."""
    summary = summarize(plan)
    project = plan.config.project
    what = f"{project.name} {project.version}"
    subset = f", subset {plan.subset}" if plan.subset else ""
    selected = ", selected" if plan.partial else ""
    title = Text.assemble(
        (what, "bold"),
        f" (recipe {project.recipe.name}{subset}{selected}): ",
        (f"{show_count(summary.total, 'package')}, {show_count(len(plan), 'job')}", "bold"),
    )
    parts: list[RenderableType] = [title, ""]
    if summary.total:
        parts += [_packages(summary), "", _dimensions(summary), ""]
    parts += [_stages(summary), ""]
    if summary.total:
        parts.append(_sharing(summary))
    if summary.served:
        parts.append(_served(plan, summary))
    if glibc := plan.config.build.glibc:
        text = f"everything runs with glibc {glibc} or newer; a job that breaks this fails"
        parts.append(Text.assemble(("promise: ", "bold"), text))
    guess = estimate(plan)
    if guess.timed:
        parts.append(_estimate(guess))
    if plan.config.left_out:
        parts += ["", _left_out(plan.config.left_out)]
    for heading, rules in (("taken in", inclusions(plan)), ("left out", exclusions(plan))):
        if rules:
            parts += ["", _rules(heading, rules)]
    own = own_rows(plan.config)
    if own:
        columns = (word("row"), word("of table"), word("where"))
        parts += ["", table(columns, ((row.name, row.table, str(row.origin)) for row in own))]
    return Group(*parts)


def _packages(summary: Summary) -> Table:
    columns = (number(package.replace("-", "-\n")) for package in summary.packages)
    made = table([word("platform"), *columns], tight=True)
    for platform, counts in summary.platforms.items():
        made.add_row(platform, *(f"{counts.get(p, 0) or '·'}" for p in summary.packages))
    totals = (f"{count:,}" for count in summary.packages.values())
    made.add_row("total", *totals, style="bold")
    return made


def _dimensions(summary: Summary) -> Table:
    return table(
        (word("dimension"), "packages with each value"),
        (
            (dimension, ", ".join(f"{value}×{count:,}" for value, count in counts.items()))
            for dimension, counts in summary.dimensions.items()
            if dimension not in ("platform", "package")
        ),
    )


def _stages(summary: Summary) -> Table:
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
    return table(
        (word("stage"), number("jobs"), "what"),
        ((stage.value, f"{count:,}", meaning[stage]) for stage, count in summary.stages.items()),
    )


def _sharing(summary: Summary) -> Text:
    return Text.assemble(
        ("sharing: ", "bold"),
        f"the C++ code is compiled {show_count(summary.compilations, 'time')} for "
        f"{show_count(summary.total, 'package')}; "
        f"one by one, it would be {show_count(summary.separate, 'time')}",
    )


def _served(plan: Plan, summary: Summary) -> Text:
    cells = show_count(summary.total + summary.served, "cell")
    builds = show_count(summary.compilations, "build")
    text = f"{cells} served by {builds}, as the file says abi = {plan.config.build.abi}"
    return Text.assemble(("served: ", "bold"), text)


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


def _left_out(paths: Mapping[str, str]) -> Table:
    """List what is in the source directory and no part of the source."""
    made = table((folded("not in the source"), word("why")))
    for why in sorted(set(paths.values())):
        names = [path for path, reason in paths.items() if reason == why]
        more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
        made.add_row(f"{', '.join(names[:_LISTED])}{more}", f"{why} it")
    return made


def _rules(title: str, rules: Sequence[RuleCount]) -> Table:
    """Rules with their counts and reasons; what the tables rule out is folded into one line."""
    made = table(
        (number(title), "why", word("where")),
        (
            (f"{rule.cells:,}", rule.reason, str(rule.origin))
            for rule in rules
            if rule.origin is not TABLES
        ),
    )
    impossible = [rule for rule in rules if rule.origin is TABLES]
    if impossible:
        others = len(impossible) - 1
        more = f", and {show_count(others, 'reason')} like it" if others else ""
        count = sum(rule.cells for rule in impossible)
        made.add_row(f"{count:,}", f"{impossible[0].reason}{more}", str(TABLES))
    return made


def diff_report(diff: PlanDiff) -> RenderableType:
    """List changes, grouped by the line that causes them."""
    parts: list[RenderableType] = []
    for title, sign, style, changes in (
        ("gone", "-", "red", diff.vanished),
        ("new", "+", "green", diff.appeared),
        ("to rebuild", "~", "yellow", diff.rebuilt),
        ("to test again", "?", "cyan", diff.retested),
    ):
        if changes:
            what = f"{show_count(len(changes), 'package')} {title}"
            parts.append(Text(what, style=f"bold {style}"))
            parts += _by_cause(changes, sign, style)
    parts.append(Text(f"{show_count(diff.unchanged, 'package')} unchanged", style="bold"))
    return Group(*parts)


def _by_cause(changes: Iterable[PackageChange], sign: str, style: str) -> Iterable[RenderableType]:
    groups: dict[tuple[Cause, ...], list[PackageChange]] = {}
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


def story_report(plan: Plan, story: Explanation, against: FingerprintDiff | None) -> RenderableType:
    """Show why a cell or a job exists or not, and its ingredients."""
    name = Text(str(story.identifier), style="bold", overflow="fold")
    if story.absences:
        identifier = story.identifier
        stage = identifier.stage or Stage.PACKAGE
        lost = against.causes(stage, scope_of(stage, identifier.path)) if against else ()
        return Group(name, *_reasons(story.absences), *([_causes(lost)] if lost else []))
    if story.identifier.stage:
        return Group(name, *_job(plan, story.jobs[0], against))
    return Group(name, *_cell(plan, story, against))


def _reasons(absences: Sequence[Absence]) -> Iterator[RenderableType]:
    for absence in absences:
        yield Text.assemble(
            ("is not planned", "bold red"), f": {absence.reason} ", (f"({absence.origin})", "dim")
        )


def _cell(
    plan: Plan, story: Explanation, against: FingerprintDiff | None
) -> Iterator[RenderableType]:
    yield Text("is planned", style="bold green")
    yield ""
    yield table(
        tuple(map(folded, ("admitted by", "value", "where"))),
        ((item.name, item.value, str(item.origin)) for item in story.admitted_by),
    )
    yield ""
    yield f"subsets: {', '.join(story.subsets) or 'none'}"
    if story.overrides:
        yield f"overrides: {', '.join(str(override.origin) for override in story.overrides)}"
    yield ""
    jobs = table((word("job"), word("fingerprint"), number("makes")))
    for job in story.jobs:
        count = plan.packages_of(job)
        shared = show_count(count, "package") if count > 1 else "this one"
        jobs.add_row(job.stage.value, job.fingerprint[:SHORT], shared)
    yield jobs
    if against:
        yield ""
        yield _causes(against.cell_causes(Cell.from_path(story.identifier.path)))


def _job(plan: Plan, job: Job, against: FingerprintDiff | None) -> Iterator[RenderableType]:
    count = show_count(plan.packages_of(job), "package")
    verb = "publishes" if job.stage is Stage.PUBLISH else "has a part in"
    yield f"fingerprint {job.fingerprint}"
    yield f"{verb} {count}"
    yield ""
    parts = table((word("made of"), folded("value"), folded("where")))
    for item in ingredients(plan, job):
        value = item.value[:SHORT] if item.name == "input" else item.value
        parts.add_row(item.name, value, str(item.origin))
    yield parts
    if job.stage is Stage.SOURCE and plan.config.left_out:
        yield ""
        yield _left_out(plan.config.left_out)
    if against:
        yield ""
        yield _causes(against.causes(job.stage, job.scope))


def _causes(causes: Sequence[Cause]) -> RenderableType:
    if not causes:
        return Text("unchanged: the fingerprint is the same as before", style="bold green")
    lines = [Text("changed, because", style="bold yellow")]
    lines += [Text.assemble(f"  {cause.what} ", (f"({cause.origin})", "dim")) for cause in causes]
    return Group(*lines)


def settings_report(rows: Iterable[tuple[str, str, str]]) -> RenderableType:
    """List the key, value and origin of every setting."""
    return table((word("key"), folded("value"), folded("from")), rows)
