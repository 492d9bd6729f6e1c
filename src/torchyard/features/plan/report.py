"""Plans and their differences."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from torchyard.errors import VanishError
from torchyard.features.plan.diagram import DIAGRAMS, fold
from torchyard.model.matrix import Needs
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.model.recipe import Stage
from torchyard.model.step import Setting
from torchyard.model.values import Reported
from torchyard.plan.admission import TABLES
from torchyard.plan.diff import PlanDiff
from torchyard.plan.summary import Estimate, OwnRow, RuleCount, Summary
from torchyard.reports.left_out import left_out_table
from torchyard.reports.plan_diff import diff_lines
from torchyard.terminal.tables import Lines, assembled, number, table, word

if TYPE_CHECKING:  # slow to import
    from rich.table import Table


class PlannedProject(Reported, kw_only=True):
    """What is built."""

    name: str
    version: str
    recipe: str


class JobRow(Reported, kw_only=True):
    """A job; its inputs are identifiers of jobs listed before it.

    The fingerprint is the sha256 of the canonical JSON of `inputs` (as sorted fingerprints),
    `recipe`, `scope`, `settings`, `stage` and `stage_revision`.
    """

    id: str
    stage: Stage
    stage_revision: int
    scope: str
    recipe: str
    fingerprint: str
    inputs: Sequence[str]
    settings: Mapping[str, Setting]
    needs: Needs


class MatrixReport(Reported, kw_only=True):
    """`torchyard plan --json`.

    `own_rows` are rows of the file's [tables]; `left_out` maps paths of the source directory that
    are no part of the source to reasons.
    """

    version: Literal[1] = 1
    project: PlannedProject
    subset: str | None
    partial: bool
    summary: Summary
    estimate: Estimate
    excluded: Sequence[RuleCount]
    included: Sequence[RuleCount]
    own_rows: Sequence[OwnRow]
    left_out: Mapping[str, str]
    glibc: str | None
    abi: str | None
    warnings: Sequence[str]
    cells: Sequence[str]
    jobs: Sequence[JobRow]


def plan_text(
    report: MatrixReport,
    *,
    listed: Literal["jobs"] | None = None,
    diagram: str | None = None,
) -> Lines | str:
    """Show the whole plan, or return its cells, its jobs or a diagram."""
    if listed == "jobs":
        return "".join(f"{job.id}\n" for job in report.jobs)
    if diagram:
        channels = [job.scope for job in report.jobs if job.stage is Stage.PUBLISH]
        has_core = Stage.CORE in report.summary.stages
        return DIAGRAMS[diagram](fold(report.cells, channels, has_core=has_core))
    return _screen(report)


def _screen(report: MatrixReport) -> Lines:
    summary, project = report.summary, report.project
    subset = f", subset {report.subset}" if report.subset else ""
    selected = ", selected" if report.partial else ""
    counts = f"{show_count(summary.total, 'package')}, {show_count(len(report.jobs), 'job')}"
    yield assembled(
        (f"{project.name} {project.version}", "bold"),
        f" (recipe {project.recipe}{subset}{selected}): ",
        (counts, "bold"),
    )
    yield ""
    if summary.total:
        yield from (_packages(summary), "", _dimensions(summary), "")
    yield from (_stages(summary), "")
    for title, text in _facts(report):
        yield assembled((f"{title}: ", "bold"), text)
    if report.left_out:
        yield from ("", left_out_table(report.left_out))
    for heading, rules in (("taken in", report.included), ("left out", report.excluded)):
        if rules:
            yield from ("", _rules(heading, rules))
    if report.own_rows:
        columns = (word("row"), word("of table"), word("where"))
        yield from ("", table(columns, ((r.name, r.table, r.origin) for r in report.own_rows)))


def _packages(summary: Summary) -> "Table":
    columns = (number(package.replace("-", "-\n")) for package in summary.packages)
    made = table([word("platform"), *columns], tight=True)
    for platform, counts in summary.platforms.items():
        made.add_row(platform, *(f"{counts.get(p, 0) or '·'}" for p in summary.packages))
    totals = (f"{count:,}" for count in summary.packages.values())
    made.add_row("total", *totals, style="bold")
    return made


def _dimensions(summary: Summary) -> "Table":
    return table(
        (word("dimension"), "packages with each value"),
        (
            (dimension, ", ".join(f"{value}×{count:,}" for value, count in counts.items()))
            for dimension, counts in summary.dimensions.items()
            if dimension not in ("platform", "package")
        ),
    )


def _facts(report: MatrixReport) -> Iterable[tuple[str, str]]:
    """Yield facts about sharing, services, promises and estimates, with titles."""
    summary, guess = report.summary, report.estimate
    builds = show_count(summary.compilations, "build")
    if summary.total:
        times = show_count(summary.compilations, "time")
        apart = show_count(summary.separate, "time")
        packages = show_count(summary.total, "package")
        text = f"the C++ code is compiled {times} for {packages}; one by one, it would be {apart}"
        yield "sharing", text
    if summary.served:
        cells = show_count(summary.total + summary.served, "cell")
        yield "served", f"{cells} served by {builds}, as the file says abi = {report.abi}"
    if report.glibc:
        text = f"everything runs with glibc {report.glibc} or newer; a job that breaks this fails"
        yield "promise", text
    if guess.timed:
        yield "estimate", _estimate(guess)


def _estimate(guess: Estimate) -> str:
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
    return f"{text}; the largest job wants {', '.join(largest)}" if largest else text


def _stages(summary: Summary) -> "Table":
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


def _rules(title: str, rules: Sequence[RuleCount]) -> "Table":
    """Yield rules with counts and reasons; exclusions of the tables are one line."""
    own = [rule for rule in rules if rule.origin != str(TABLES)]
    rows = [(f"{rule.cells:,}", rule.reason, rule.origin) for rule in own]
    impossible = [rule for rule in rules if rule.origin == str(TABLES)]
    if impossible:
        others = len(impossible) - 1
        more = f", and {show_count(others, 'reason')} like it" if others else ""
        count = sum(rule.cells for rule in impossible)
        rows.append((f"{count:,}", f"{impossible[0].reason}{more}", str(TABLES)))
    return table((number(title), "why", word("where")), rows)


def plan_diff_text(diff: PlanDiff) -> Lines:
    """List changes, grouped by the line that causes them."""
    return diff_lines(diff)


def plan_diff_error(diff: PlanDiff, *, fail_on_vanish: bool = False) -> VanishError | None:
    """Return an error if packages vanish and that is forbidden."""
    if not (fail_on_vanish and diff.vanished):
        return None
    msg = f"the new plan lacks {show_count(len(diff.vanished), 'package')} of the old one"
    return VanishError(msg, hint="if that is intended, remove --fail-on-vanish")
