"""Why something is or is not in the plan, and the purpose of rules."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from torchyard.checks.rule import Rule, Severity, paragraphs
from torchyard.model.quantity import show_count
from torchyard.model.recipe import Stage
from torchyard.model.values import Reported
from torchyard.plan.diff import Cause
from torchyard.plan.explain import Ingredient
from torchyard.reports.left_out import left_out_table
from torchyard.terminal.tables import (
    SHORT,
    STYLES,
    Lines,
    assembled,
    folded,
    number,
    styled,
    table,
    word,
)


class ExplainedJob(Reported, kw_only=True):
    """A job and the ingredients of its fingerprint."""

    id: str
    stage: Stage
    fingerprint: str
    packages: int
    ingredients: list[Ingredient]
    changed: Sequence[Cause] | None


class Explained(Reported, kw_only=True):
    """A cell with its jobs, or a job; `left_out` maps paths left out of the source to reasons."""

    id: str
    stage: Stage | None
    planned: bool
    reasons: list[Cause]
    admitted_by: Sequence[Ingredient]
    subsets: Sequence[str]
    overrides: list[str]
    left_out: Mapping[str, str]
    jobs: list[ExplainedJob]
    changed: Sequence[Cause] | None


class ExplainReport(Reported, kw_only=True):
    """`torchyard explain --json`: cells and jobs, or rules."""

    version: Literal[1] = 1
    explained: Sequence[Explained] = ()
    rules: Sequence[Rule] = ()


def explain_text(report: ExplainReport, words: Sequence[str]) -> Lines:
    """Show why cells and jobs exist or not, and their ingredients; or the page of a rule."""
    for explained in report.explained:
        yield styled(explained.id, "bold")
        show = _absent if explained.reasons else _job if explained.stage else _cell
        yield from show(explained)
    if report.rules and words[1:] == (report.rules[0].id,):
        yield from _rule(report.rules[0])
    elif report.rules:
        yield from _rules(report.rules)


def _absent(absent: Explained) -> Lines:
    for what, origin in ((reason.what, reason.origin) for reason in absent.reasons):
        yield assembled(("is not planned", "bold red"), f": {what} ", (f"({origin})", "dim"))
    if absent.changed:
        yield from _causes(absent.changed)


def _cell(cell: Explained) -> Lines:
    yield styled("is planned", "bold green")
    yield ""
    yield table(
        tuple(map(folded, ("admitted by", "value", "where"))),
        ((item.name, item.value, item.origin) for item in cell.admitted_by),
    )
    yield ""
    yield f"subsets: {', '.join(cell.subsets) or 'none'}"
    if cell.overrides:
        yield f"overrides: {', '.join(cell.overrides)}"
    yield ""
    yield table(
        (word("job"), word("fingerprint"), number("makes")),
        ((job.stage.value, job.fingerprint[:SHORT], _makes(job)) for job in cell.jobs),
    )
    if cell.changed is not None:
        yield ""
        yield from _causes(cell.changed)


def _makes(job: ExplainedJob) -> str:
    return show_count(job.packages, "package") if job.packages > 1 else "this one"


def _job(explained: Explained) -> Lines:
    job = explained.jobs[0]
    verb = "publishes" if job.stage is Stage.PUBLISH else "has a part in"
    yield f"fingerprint {job.fingerprint}"
    yield f"{verb} {show_count(job.packages, 'package')}"
    yield ""
    yield table(
        (word("made of"), folded("value"), folded("where")),
        ((item.name, _shortened(item), item.origin) for item in job.ingredients),
    )
    if explained.left_out:
        yield ""
        yield left_out_table(explained.left_out)
    if job.changed is not None:
        yield ""
        yield from _causes(job.changed)


def _shortened(item: Ingredient) -> str:
    return item.value[:SHORT] if item.name == "input" else item.value


def _causes(causes: Sequence[Cause]) -> Lines:
    if not causes:
        yield styled("unchanged: the fingerprint is the same as before", "bold green")
        return
    yield styled("changed, because", "bold yellow")
    for cause in causes:
        yield assembled(f"  {cause.what} ", (f"({cause.origin})", "dim"))


def _rule(rule: Rule) -> Lines:
    """Show the page of a rule, and how a policy allows its findings or changes its severity."""
    yield assembled((rule.id, "bold"), " (", (rule.severities, STYLES[rule.severity]), ")")
    yield styled(rule.reason)
    yield ""
    yield styled("\n\n".join(paragraphs(rule.page)))
    yield ""
    other = Severity.WARNING if rule.severity is Severity.ERROR else Severity.ERROR
    yield styled(
        "To accept what it finds up to a day, write into a .toml file for `--policy`:\n\n"
        f'    [[allow]]\n    rule = "{rule.id}"\n    member = "*"\n'
        '    reason = "why it is all right"\n    until = 2030-12-31\n\n'
        f'To change how bad it is:\n\n    [severity]\n    {rule.id} = "{other}"  # or off\n'
    )


def _rules(rules: Iterable[Rule]) -> Lines:
    yield table(
        (word("rule"), word("severity"), "why"),
        ((rule.id, styled(rule.severity, STYLES[rule.severity]), rule.reason) for rule in rules),
    )
