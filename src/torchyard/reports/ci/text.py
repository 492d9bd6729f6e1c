"""What the commands of `torchyard ci` print for people."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from torchyard.ci.drift import ComparedFile, FileState
from torchyard.model.quantity import show_count, show_size
from torchyard.reports.ci.document import CiExplainDocument, CiImpactDocument, CiJobRow
from torchyard.terminal.tables import and_more, folded, indented, number, table, word

_DIFF = 40
"""Lines of a difference that are shown."""

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_PACKAGES = 20
"""Affected packages that are named."""

_JOBS = 8
"""Jobs of the plan that are named for each job of the provider."""


def ci_files_report(files: Sequence[ComparedFile], *, written: bool) -> RenderableType:
    """Show the files of providers, and how those differ that were only compared."""
    made = table([word("file"), number("size"), folded("state")])
    for file in files:
        made.add_row(file.path, show_size(len(file.text.encode())), _state(file, written=written))
    parts: list[RenderableType] = [made]
    for file in files:
        if file.diff and not written:
            parts += ["", *_diff(file.diff)]
    return Group(*parts)


def _state(file: ComparedFile, *, written: bool) -> Text:
    if file.state is FileState.CURRENT:
        return Text(file.state, style="green")
    if written:
        return Text("removed" if file.state is FileState.LEFT_OVER else "written")
    return Text(file.reason, style="bold red")


def _diff(lines: Sequence[str]) -> Iterator[Text]:
    for line in lines[:_DIFF]:
        yield Text(line, style=_STYLES.get(line[:1], ""), overflow="fold")
    if len(lines) > _DIFF:
        yield Text(f"… {len(lines) - _DIFF:,} more lines", style="dim")


def ci_impact_report(document: CiImpactDocument) -> RenderableType:
    """Show how many jobs of each stage are affected, and the packages among them."""
    jobs = sum(stage.jobs for stage in document.stages.values())
    told = f"{len(document.affected):,} of {show_count(jobs, 'job')} affected"
    title = Text.assemble((f"{document.base} → {document.head}", "bold"), f": {told}")
    made = table([word("stage"), number("affected"), number("jobs")])
    for name, stage in document.stages.items():
        made.add_row(name, f"{stage.affected:,}", f"{stage.jobs:,}")
    packages = [name for name in document.affected if name.startswith("package:")]
    shown = (indented(name, 2) for name in packages[:_PACKAGES])
    gone = [name for name in document.vanished if name.startswith("package:")]
    lost = [f"{show_count(len(gone), 'package')} no longer planned"] if gone else []
    return Group(title, "", made, "", *shown, *and_more(len(packages) - _PACKAGES, 2), *lost)


def ci_explain_report(document: CiExplainDocument) -> RenderableType:
    """Show each job of a provider: where and when it runs, and its commands."""
    return Group(*(part for row in document.jobs for part in _job(row)))


def _job(row: CiJobRow) -> Iterator[RenderableType]:
    part = f" [{row.part}]" if row.part else ""
    yield Text.assemble((f"{row.job}{part}", "bold"), f" in {row.pipeline} ({row.provider})")
    where = ", ".join(row.labels) + (f", image {row.image}" if row.image else "")
    yield Text(f"  on    {where}", overflow="fold")
    if row.needs:
        yield Text(f"  after {', '.join(row.needs)}", overflow="fold")
    about = f", about {row.estimated_minutes:,}" if row.estimated_minutes else ""
    more = f"; round {row.round} of {row.rounds}" if row.rounds > 1 else ""
    yield Text(f"  time  at most {row.minutes:,} minutes{about}{more}", overflow="fold")
    for command in row.commands:
        yield Text(f"  $ {command}", overflow="fold")
    for name in row.planned[:_JOBS]:
        yield Text(f"    {name}", style="dim", overflow="fold")
    if len(row.planned) > _JOBS:
        yield Text(f"    and {show_count(len(row.planned) - _JOBS, 'more job')}", style="dim")
    yield ""
