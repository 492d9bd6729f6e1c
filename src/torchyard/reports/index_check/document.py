"""What `torchyard index check --json` prints."""

from typing import Literal

from torchyard.checks.registry import RULES
from torchyard.checks.rule import Severity
from torchyard.model.values import Reported
from torchyard.publish.index_check.check import Audit, Sort
from torchyard.publish.index_check.findings import IndexFindings
from torchyard.version import __version__


class IndexFindingDocument(Reported, kw_only=True, omit_defaults=True):
    """What a rule found: on which page or in which file, and what is wrong.

    `allowed` is the policy's reason to accept it; the key is left out if there is none.
    """

    where: str
    what: str
    allowed: str = ""


class IndexRuleDocument(Reported, kw_only=True):
    """A rule that found something: how often, and up to a hundred of its findings.

    If a policy allows some findings of a rule, these are listed apart, as notes.
    """

    rule: str
    severity: Severity
    reason: str
    count: int
    findings: list[IndexFindingDocument]


class IndexCheckDocument(Reported, kw_only=True):
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


def index_check_document(
    audit: Audit, findings: IndexFindings, *, deep: bool
) -> IndexCheckDocument:
    """Describe what an audit found, the worst first."""
    order = list(Severity)
    counts = {severity.value: 0 for severity in order}
    for (_, severity), count in findings.counts.items():
        counts[severity] += count
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
                rule=rule,
                severity=severity,
                reason=RULES[rule].reason,
                count=count,
                findings=[
                    IndexFindingDocument(where=one.member, what=one.what, allowed=one.allowed)
                    for one in findings.kept
                    if (one.rule, one.severity) == (rule, severity)
                ],
            )
            for (rule, severity), count in sorted(
                findings.counts.items(), key=lambda item: order.index(item[0][1])
            )
        ],
    )
