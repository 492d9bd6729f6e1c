"""Findings in an index, and changes of a channel's pages."""

from collections.abc import Mapping, Sequence
from typing import Literal

from torchyard.checks.rule import Finding, Severity
from torchyard.errors import AuditError
from torchyard.index.entry import Status
from torchyard.model.quantity import show_count
from torchyard.model.values import Reported
from torchyard.publish.channel.head import Change
from torchyard.publish.index_check.check import Sort
from torchyard.publish.ops.repair_channel import HeadSource
from torchyard.terminal.tables import (
    STYLES,
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
from torchyard.terminal.untrusted import printable

_LISTED = 4
"""The most findings of a rule to show; `--json` has more."""

_ALL_LISTED = ("index-unresolved",)
"""Rules whose findings each need action."""

_HEADS: Mapping[HeadSource, str] = {
    "whole": "the head is undamaged",
    "copy": "the head is restored from its copy",
    "states": "the head is rebuilt from states; its name, pins and log are lost",
}


class IndexRule(Reported, kw_only=True):
    """A rule with findings: their number, and up to a hundred of them.

    Findings that a policy allows are listed separately, as notes.
    """

    rule: str
    severity: Severity
    reason: str
    count: int
    findings: list[Finding]


class IndexReport(Reported, kw_only=True):
    """`torchyard channel check --json`: `findings` counts them by severity."""

    version: Literal[1] = 1
    torchyard: str
    url: str
    sort: Sort
    deep: bool
    projects: int
    files: int
    findings: dict[str, int]
    rules: list[IndexRule]


class IndexLog(Reported, kw_only=True):
    """`torchyard channel log --json`: the changes that can be rolled back, the newest first."""

    version: Literal[1] = 1
    channel: str
    generation: int
    changes: Sequence[Change]


class MendReport(Reported, kw_only=True):
    """`torchyard channel mend --json`: the pages that were rewritten."""

    version: Literal[1] = 1
    channel: str
    pages: list[str]


class RepairedPart(Reported):
    """A part with another state than before; `files` is null if none remains."""

    part: str
    files: int | None


class RestoreReport(Reported, kw_only=True):
    """`torchyard channel restore --json`: what was restored, or with `dry_run` would be.

    `head` is the origin of the head: undamaged, from its copy, or from states of parts.
    `unreachable` are generations that can't be restored.
    """

    version: Literal[1] = 1
    channel: str
    dry_run: bool
    generation: int
    head: HeadSource
    parts: list[RepairedPart]
    unreachable: Sequence[int]
    pages: list[str]


class StatusReport(Reported):
    """`torchyard channel status --json`: the new status of a project."""

    channel: str
    generation: int
    project: str
    status: Status
    version: Literal[1] = 1


def channel_check_text(report: IndexReport) -> Lines:
    """Show each rule with findings and examples, a table of all, and a verdict."""
    for rule in report.rules:
        yield from _rule(rule)
        yield ""
    if len(report.rules) > 1:
        yield table(
            (word("rule"), word("severity"), number("found")),
            (
                (
                    rule.rule,
                    styled(rule.severity, STYLES[rule.severity]),
                    f"{rule.count:,}",
                )
                for rule in report.rules
            ),
        )
        yield ""
    yield from _verdict(report)


def channel_check_error(report: IndexReport) -> AuditError | None:
    if not report.findings["error"]:
        return None
    msg = f"errors were found in {report.url}"
    return AuditError(msg, hint=f"`torchyard explain rule {report.rules[0].rule}` says more")


def _rule(rule: IndexRule) -> Lines:
    count = f" ({rule.count:,})" if rule.count > 1 else ""
    shown = (rule.severity.value, STYLES[rule.severity]), " ", (rule.rule, "bold")
    yield assembled(*shown, f"{count}: {rule.reason}")
    listed = len(rule.findings) if rule.rule in _ALL_LISTED else _LISTED
    for finding in rule.findings[:listed]:
        yield indented(finding.member, 2, style="bold")
        yield indented(finding.what, 4)
        if finding.allowed:
            yield indented(assembled(("allowed: ", "cyan"), printable(finding.allowed)), 4)
    yield from and_more(rule.count - listed, 2)


def _verdict(report: IndexReport) -> Lines:
    found = ", ".join(show_count(n, name) for name, n in report.findings.items() if n)
    seen = show_count(report.files, "file")
    if report.projects:
        seen += f" of {show_count(report.projects, 'project')}"
    if not report.deep:
        seen += ", of which none was read (--deep)"
    if report.findings["error"]:
        yield assembled(("failed", "bold red"), f": {found} in {seen}")
    else:
        yield assembled(("passed", "bold green"), f": {found or 'nothing found'} in {seen}")


def channel_log_text(report: IndexLog) -> Lines:
    """List the changes of a channel, the newest first."""
    if not report.changes:
        yield styled(f"{report.channel}: it has no change to undo")
        return
    yield table(
        (number("generation"), word("when"), folded("what")),
        (
            (str(change.generation), change.at[:16].replace("T", " "), styled(change.why))
            for change in report.changes
        ),
    )


def channel_mend_text(report: MendReport) -> Lines:
    """List the pages that were rewritten."""
    yield from map(styled, report.pages)
    yield styled(f"{report.channel}: {show_count(len(report.pages), 'page')} mended")


def channel_restore_text(report: RestoreReport) -> Lines:
    """List what was restored, and what is lost."""
    yield styled(_HEADS[report.head])
    for part in report.parts:
        if part.files is None:
            yield styled(f"{part.part} is lost; publish its packages again")
        else:
            count = show_count(part.files, "file")
            yield styled(f"{part.part} shows {count}; publish again what is missing")
    if report.unreachable:
        gone = ", ".join(map(str, report.unreachable))
        yield styled(f"states are missing, so there is no rollback past generation {gone}")
    pages = show_count(len(report.pages), "page")
    done = "nothing was changed" if report.dry_run else f"{pages} rewritten"
    yield styled(f"{report.channel}: generation {report.generation}, {done}")


def channel_status_text(report: StatusReport) -> Lines:
    where = f"{report.channel}: generation {report.generation}"
    yield styled(f"{where}, {report.project} is {report.status}")
