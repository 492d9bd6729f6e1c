"""What `torchyard index check --json` and `torchyard mirror --json` print."""

from collections.abc import Iterable
from typing import Literal

from torchyard import __version__
from torchyard.checks.rule import Severity
from torchyard.publish.index_check.check import Audit, Sort
from torchyard.publish.index_check.rules import RULES, Finding, Findings
from torchyard.publish.mirror.mirror import Fate, Mirrored
from torchyard.reports.document import Document


class IndexFindingDocument(Document, kw_only=True):
    """What a rule found: on which page or in which file, and what is wrong."""

    where: str
    what: str


class IndexRuleDocument(Document, kw_only=True):
    """A rule that found something: how often, and up to a hundred of its findings."""

    rule: str
    severity: Severity
    reason: str
    count: int
    findings: list[IndexFindingDocument]


class IndexCheckDocument(Document, kw_only=True):
    """`torchyard index check --json`: `findings` counts them by severity."""

    version: Literal[1] = 1
    torchyard: str
    url: str
    sort: Sort
    deep: bool
    projects: int
    files: int
    findings: dict[str, int]
    rules: list[IndexRuleDocument]


def index_check_document(audit: Audit, findings: Findings, *, deep: bool) -> IndexCheckDocument:
    """Describe what an audit found, the worst first."""
    order = list(Severity)
    rules = sorted(findings.counts, key=lambda rule: order.index(RULES[rule].severity))
    counts = {severity.value: 0 for severity in order}
    for rule, count in findings.counts.items():
        counts[RULES[rule].severity] += count
    return IndexCheckDocument(
        torchyard=__version__,
        url=audit.url,
        sort=audit.sort,
        deep=deep,
        projects=audit.projects,
        files=audit.files,
        findings=counts,
        rules=[
            IndexRuleDocument(
                rule=rule.value,
                severity=RULES[rule].severity,
                reason=RULES[rule].reason,
                count=findings.counts[rule],
                findings=_found(one for one in findings.kept if one.rule is rule),
            )
            for rule in rules
        ],
    )


def _found(findings: Iterable[Finding]) -> list[IndexFindingDocument]:
    return [IndexFindingDocument(where=one.where, what=one.what) for one in findings]


class MirroredDocument(Document, kw_only=True):
    """A file: a `new` one is fetched, one that is `sent` came by an earlier run."""

    project: str
    file: str
    release: str
    variant: str
    bytes: int | None
    fate: Fate
    yanked: bool


class MirrorDocument(Document, kw_only=True):
    """`torchyard mirror --json`. The generation is that of the channel, 0 if nothing was done."""

    version: Literal[1] = 1
    source: str
    channel: str
    generation: int
    files: list[MirroredDocument]


def mirror_document(
    source: str, channel: str, generation: int, files: Iterable[Mirrored]
) -> MirrorDocument:
    return MirrorDocument(
        source=source,
        channel=channel,
        generation=generation,
        files=[
            MirroredDocument(
                project=one.chosen.project,
                file=one.chosen.link.file,
                release=one.chosen.version,
                variant=one.chosen.variant,
                bytes=one.entry.size if one.entry else one.chosen.link.size,
                fate=one.fate,
                yanked=one.chosen.link.yanked is not None,
            )
            for one in files
        ],
    )


AUDIT_REPORTS: dict[str, type[Document]] = {
    "index-check": IndexCheckDocument,
    "mirror": MirrorDocument,
}
