"""Explanations, for people."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.model.identifier import Cell, scope_of
from torchyard.model.quantity import show_count
from torchyard.model.recipe import Stage
from torchyard.plan.admission import Absence
from torchyard.plan.diff import Cause, FingerprintDiff
from torchyard.plan.explain import Explanation, ingredients
from torchyard.plan.graph import Job, Plan
from torchyard.reports.left_out import left_out_table
from torchyard.terminal.tables import SHORT, folded, number, table, word


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
        yield left_out_table(plan.config.left_out)
    if against:
        yield ""
        yield _causes(against.causes(job.stage, job.scope))


def _causes(causes: Sequence[Cause]) -> RenderableType:
    if not causes:
        return Text("unchanged: the fingerprint is the same as before", style="bold green")
    lines = [Text("changed, because", style="bold yellow")]
    lines += [Text.assemble(f"  {cause.what} ", (f"({cause.origin})", "dim")) for cause in causes]
    return Group(*lines)
