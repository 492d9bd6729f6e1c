"""Check any index, and maintain the pages of a channel."""

from collections.abc import Callable, Sequence

from packaging.utils import canonicalize_name

from torchyard.checks.policies import load_policy
from torchyard.checks.registry import RULES
from torchyard.checks.rule import Severity
from torchyard.config.tables import load_tables
from torchyard.errors import SelectionError
from torchyard.features.index.report import (
    IndexLog,
    IndexReport,
    IndexRule,
    MendReport,
    RepairedPart,
    RestoreReport,
    StatusReport,
)
from torchyard.host.fetcher import directory_url
from torchyard.index.entry import Status
from torchyard.model.suggest import did_you_mean
from torchyard.publish.channel.draft import ROOTS, ChangeReason
from torchyard.publish.index_check.check import audit
from torchyard.publish.index_check.findings import IndexFindings
from torchyard.publish.index_check.simple import Scope
from torchyard.publish.ops.repair_channel import repair_channel
from torchyard.publish.ops.yank import set_status
from torchyard.version import __version__
from torchyard.workspace.clock import current_date, current_moment
from torchyard.workspace.locations import open_channel, open_damaged_channel, read_channel

_MANY = 200
"""The most projects or conda packages to read without a question: more take minutes."""


def check_index(
    index: str,
    *,
    projects: Sequence[str] = (),
    external: Sequence[str] = (),
    deep: bool = False,
    yes: bool = False,
    policy: str = "default",
    confirm: Callable[[str, str, str], None],
) -> IndexReport:
    """Audit any simple index or conda channel from outside.

    Args:
        index: The address or directory of the index.
        projects: Globs of projects or conda packages to audit.
        external: Globs of names that come from elsewhere.
        deep: Read every package, and compare it with the index.
        yes: Audit all of a large index without a question.
        policy: How strict to be.
        confirm: Asks a question; raises UsageError with a reason and a hint if the answer is no.
    """
    subdirs = [platform.conda_subdir for platform in load_tables().platforms.values()]
    findings = IndexFindings(load_policy(policy), current_date())
    agreed = yes or bool(projects)

    def agree(count: int, what: str) -> None:
        nonlocal agreed
        if count > _MANY and not agreed:
            hint = "choose projects with --project GLOB, or audit all with --yes"
            confirm(f"Look at all {count:,} {what}?", f"{index} has {count:,} {what}", hint)
            agreed = True

    scope = Scope(projects=tuple(projects), external=tuple(external), deep=deep, agree=agree)
    audited = audit(directory_url(index), scope, subdirs, findings)
    severities = list(Severity)
    counts = {severity.value: 0 for severity in severities}
    for (_, severity), count in findings.counts.items():
        counts[severity] += count
    return IndexReport(
        torchyard=__version__,
        url=audited.url,
        sort=audited.sort,
        deep=deep,
        projects=audited.projects,
        files=audited.files,
        findings=counts,
        rules=[
            IndexRule(
                rule=rule,
                severity=severity,
                reason=RULES[rule].reason,
                count=count,
                findings=[o for o in findings.kept if (o.rule, o.severity) == (rule, severity)],
            )
            for (rule, severity), count in sorted(
                findings.counts.items(), key=lambda item: severities.index(item[0][1])
            )
        ],
    )


def list_changes(channel: str, *, file: str = "torchyard.toml") -> IndexLog:
    """Return the changes of a channel that can be rolled back, the newest first."""
    opened = read_channel(channel, file)
    head = opened.head()
    return IndexLog(channel=opened.url, generation=head.generation, changes=head.log[::-1])


def mend_pages(
    channel: str, parts: Sequence[str] = (), *, file: str = "torchyard.toml"
) -> MendReport:
    """Rewrite damaged or outdated pages of a channel, or only of these parts.

    Args:
        channel: The channel: its name in the file, its address or its directory.
        parts: Only pages of these parts, such as `simple/torch`.
        file: The configuration that names channels.
    """
    opened = open_channel(channel, file)
    known = opened.head().parts
    for part in parts:
        if part not in known:
            msg = f"`{opened.url}` has no part `{part}`"
            raise SelectionError(msg, hint=did_you_mean(part, known))
    return MendReport(channel=opened.url, pages=opened.mend(parts or [*known, ROOTS]))


def restore_channel(
    channel: str, *, dry_run: bool = False, file: str = "torchyard.toml"
) -> RestoreReport:
    """Restore a channel with a damaged head or states, or report what would be restored."""
    opened = open_damaged_channel(channel, file)
    change = ChangeReason("restore", current_moment())
    done = repair_channel(opened, change, dry_run=dry_run)
    files = {part: len(state.entries) for part, state in done.damage.restored.items()}
    parts = {**files, **dict.fromkeys(done.damage.lost)}
    return RestoreReport(
        channel=opened.url,
        dry_run=dry_run,
        generation=done.generation,
        head=done.damage.source,
        parts=[RepairedPart(part, count) for part, count in sorted(parts.items())],
        unreachable=done.damage.unreachable,
        pages=done.pages,
    )


def set_project_status(
    channel: str, project: str, status: Status, *, reason: str = "", file: str = "torchyard.toml"
) -> StatusReport:
    """Set the status of a project (PEP 792)."""
    opened = open_channel(channel, file)
    because = f": {reason}" if reason else ""
    change = ChangeReason(f"status {project} {status}{because}", current_moment())
    head = set_status(opened, canonicalize_name(project), status, reason, change)
    return StatusReport(opened.url, head.generation, project, status)
