"""Check packages by all rules, under a policy."""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import islice

from msgspec.structs import replace

from torchyard.checks.checked import CheckedPackage, describe_package
from torchyard.checks.compat.matrix import undecided_symbols
from torchyard.checks.enforce import Enforcer
from torchyard.checks.expected import spec_in_package
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.registry import PACKAGE_RULES
from torchyard.checks.rule import Finding, Hit, Severity
from torchyard.checks.subject import Subject, Torches
from torchyard.model.job_spec import JobSpec
from torchyard.model.matrix import matches
from torchyard.package.contents import Contents

_MOST_HITS = 1000
"""Maximum hits of a rule for a package."""
_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


def apply_rules(
    packages: Sequence[Contents],
    policy: CheckPolicy,
    today: date,
    spec: JobSpec | None = None,
    torches: Torches = tuple,
) -> list[CheckedPackage]:
    """Run all rules over each package, and compare the packages with each other.

    `spec` is the specification of the job that delivered them, if known. `torches` returns the
    torch releases to compare extensions with.
    """
    enforcer = Enforcer(policy, today)
    described: list[CheckedPackage] = []
    found: list[list[Finding]] = []
    for index, contents in enumerate(packages):
        others = (*packages[:index], *packages[index + 1 :])
        subject = Subject(contents, policy, others, spec, torches)
        found.append(list(_find(subject, enforcer)))
        described.append(describe_package(subject, undecided_symbols(subject)))
    for allowance, note in enforcer.unused(PACKAGE_RULES):
        for contents, findings in zip(packages, found, strict=True):
            if matches(contents.file_name, allowance.package):
                findings.append(note)  # once, for the first matching package
                break
    return [
        replace(package, findings=tuple(sorted(findings, key=_rank)))
        for package, findings in zip(described, found, strict=True)
    ]


def _rank(finding: Finding) -> tuple[int, str, str]:
    return _RANKS[finding.severity], finding.rule, finding.member


def _find(subject: Subject, enforcer: Enforcer) -> Iterator[Finding]:
    is_own = spec_in_package(subject.contents) is not None
    for rule in PACKAGE_RULES.values():
        hits = list(islice(rule.find(subject), _MOST_HITS + 1)) if enforcer.severity(rule) else []
        if len(hits) > _MOST_HITS:
            what = f"there are more than {_MOST_HITS} of these, and only the first are listed"
            hits[_MOST_HITS:] = [Hit(what)]
        for hit in hits:
            if severity := enforcer.severity(rule, is_own=is_own, mild=hit.is_mild):
                yield enforcer.finding(rule, severity, hit, subject.contents.file_name)
