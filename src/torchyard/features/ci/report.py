"""Reports of `torchyard ci`: files, jobs, and changes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from torchyard.ci.drift import GUARDED, ComparedFile, FileState
from torchyard.ci.explain import PlacedJob
from torchyard.config.tables import toml_value
from torchyard.errors import DriftError
from torchyard.model.quantity import show_count, show_size
from torchyard.model.values import Reported
from torchyard.plan.diff import PlanDiff
from torchyard.reports.plan_diff import diff_lines
from torchyard.terminal.tables import (
    Lines,
    and_more,
    assembled,
    folded,
    indented,
    number,
    styled,
    table,
    word,
)

if TYPE_CHECKING:  # slow to import
    from rich.table import Table
    from rich.text import Text

_DIFF = 40
"""The most lines of a difference to show."""

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_PACKAGES = 20
"""The most affected packages to name."""

_JOBS = 8
"""The most jobs of the plan to name for a provider's job."""


class CiFilesReport(Reported, kw_only=True):
    """`torchyard ci generate --json` and `check --json`; the states are from before writing."""

    version: Literal[1] = 1
    files: Sequence[ComparedFile]


class CiJobsReport(Reported, kw_only=True):
    """`torchyard ci explain --json`."""

    version: Literal[1] = 1
    jobs: Sequence[PlacedJob]


class StageImpact(Reported, kw_only=True):
    """The number of a stage's jobs that a change affects, and of all."""

    affected: int
    jobs: int


class CiImpactReport(Reported, kw_only=True):
    """`torchyard ci impact --json`: the jobs that a change affects.

    `reused` are jobs with other inputs that need not run, each with the reason. `selection` is the
    text with which a provider runs only affected jobs; null without a provider.
    """

    version: Literal[1] = 1
    base: str
    head: str
    subset: str | None
    stages: Mapping[str, StageImpact]
    affected: Sequence[str]
    vanished: Sequence[str]
    reused: Mapping[str, str] = {}
    selection: str | None = None


class CiRefreshReport(Reported, kw_only=True):
    """`torchyard ci refresh --json`: new values of the matrix, and what they do to its packages.

    `diff` is null if a release is unknown: locking describes it by its wheels.
    """

    version: Literal[1] = 1
    changes: Mapping[str, Sequence[str]]
    diff: PlanDiff | None


def ci_generate_text(report: CiFilesReport) -> Lines:
    """Show the written and removed files of providers."""
    written = {FileState.LEFT_OVER: styled("removed")}
    yield _files((file, written.get(file.state, styled("written"))) for file in report.files)


def ci_check_text(report: CiFilesReport) -> Lines:
    """Show how the files of providers differ from the generated ones."""
    yield _files((file, styled(file.reason, "bold red")) for file in report.files)
    for file in report.files:
        if file.diff:
            yield ""
            yield from _diff(file.diff)


def ci_check_error(report: CiFilesReport, *, file: str = "torchyard.toml") -> DriftError | None:
    """Return an error if a file differs from the generated one."""
    stale = [found for found in report.files if found.state is not FileState.CURRENT]
    if not stale:
        return None
    first = stale[0]
    more = f", and {len(stale) - 1} more" if len(stale) > 1 else ""
    guarded = " --force" if first.state in GUARDED else ""
    named = "" if file == "torchyard.toml" else f" -f {file}"
    command = f"torchyard ci generate {first.provider}{guarded}{named}"
    hint = f"run `{command}`, and commit the files"
    if first.state is FileState.EDITED:
        hint += "; settings of [ci] keep edits"
    return DriftError(f"`{first.path}` {first.reason}{more}", hint=hint)


def _files(files: Iterable[tuple[ComparedFile, "Text"]]) -> "Table":
    """Return a table of files; `state` is shown for files that are not current."""
    made = table([word("file"), number("size"), folded("state")])
    for file, state in files:
        is_current = file.state is FileState.CURRENT
        shown = styled(file.state, "green") if is_current else state
        made.add_row(file.path, show_size(len(file.text.encode())), shown)
    return made


def _diff(lines: Sequence[str]) -> Lines:
    for line in lines[:_DIFF]:
        yield styled(line, _STYLES.get(line[:1], ""))
    if len(lines) > _DIFF:
        yield styled(f"… {len(lines) - _DIFF:,} more lines", "dim")


def ci_impact_text(report: CiImpactReport, *, output: str | None = None) -> Lines | str:
    """Show affected jobs, or return the provider's text, unless it is in a file."""
    if report.selection is not None:
        return "" if output else report.selection
    return _impact(report)


def _impact(report: CiImpactReport) -> Lines:
    """Show the number of affected jobs of each stage, and the affected packages."""
    jobs = sum(stage.jobs for stage in report.stages.values())
    counts = f"{len(report.affected):,} of {show_count(jobs, 'job')} affected"
    yield assembled((f"{report.base} → {report.head}", "bold"), f": {counts}")
    yield ""
    rows = ((name, f"{s.affected:,}", f"{s.jobs:,}") for name, s in report.stages.items())
    yield table([word("stage"), number("affected"), number("jobs")], rows)
    yield ""
    yield from (styled(f"{name}: {why}") for name, why in [*report.reused.items()][:_PACKAGES])
    yield from and_more(len(report.reused) - _PACKAGES, 0)
    packages = [name for name in report.affected if name.startswith("package:")]
    yield from (indented(name, 2) for name in packages[:_PACKAGES])
    yield from and_more(len(packages) - _PACKAGES, 2)
    gone = sum(name.startswith("package:") for name in report.vanished)
    if gone:
        yield styled(f"{show_count(gone, 'package')} no longer planned")


def ci_explain_text(report: CiJobsReport) -> Lines:
    """Show a provider's jobs: where and when they run, and their commands."""
    for job in report.jobs:
        yield from _job(job)


def _job(job: PlacedJob) -> Lines:
    part = f" [{job.part}]" if job.part else ""
    yield assembled((f"{job.job}{part}", "bold"), f" in {job.pipeline} ({job.provider})")
    where = ", ".join(job.labels) + (f", image {job.image}" if job.image else "")
    yield styled(f"  on    {where}")
    if job.needs:
        yield styled(f"  after {', '.join(job.needs)}")
    about = f", about {job.estimated_minutes:,}" if job.estimated_minutes else ""
    more = f"; round {job.round} of {job.rounds}" if job.rounds > 1 else ""
    yield styled(f"  time  at most {job.minutes:,} minutes{about}{more}")
    yield from (styled(f"  $ {command}") for command in job.commands)
    yield from (styled(f"    {name}", "dim") for name in job.planned[:_JOBS])
    if len(job.planned) > _JOBS:
        yield styled(f"    and {show_count(len(job.planned) - _JOBS, 'more job')}", "dim")
    yield ""


def ci_refresh_text(report: CiRefreshReport, *, write: bool = False) -> Lines:
    """Show the matrix for the index's releases, and its changes of packages."""
    for dimension, values in report.changes.items():
        did = "wrote" if write else "the matrix should have"
        yield styled(f"{did} {dimension} = {toml_value(values)}")
    if not report.changes:
        yield styled("the matrix is up to date")
    if report.diff is None:
        yield styled("a release is new to torchyard: `--write` describes it by its wheels")
    elif report.changes:
        yield from diff_lines(report.diff)
