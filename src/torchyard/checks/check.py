"""Checking packages: all rules over each of them, under a policy."""

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import islice
from typing import NamedTuple

import msgspec

from torchyard.checks.expected import order_of
from torchyard.checks.policy import Allowance, CheckPolicy
from torchyard.checks.registry import RULES
from torchyard.checks.rule import Finding, Rule, Severity
from torchyard.checks.subject import Subject
from torchyard.model.matrix import matches
from torchyard.package.contents import Contents

_MOST_HITS = 1000
"""Of one rule, for one package."""
_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Checked(NamedTuple):
    """A package, and what was found: the worst first."""

    contents: Contents
    findings: tuple[Finding, ...]


def check(packages: Sequence[Contents], policy: CheckPolicy, today: date) -> list[Checked]:
    """Run all rules over each package; those given together are compared with each other."""
    found: list[list[Finding]] = []
    used: set[Allowance] = set()
    for index, contents in enumerate(packages):
        others = (*packages[:index], *packages[index + 1 :])
        subject = Subject(contents, policy, others)
        found.append([])
        for finding in _find(subject):
            allowance = _allowance(finding, contents, policy)
            if allowance is not None:
                used.add(allowance)
            found[-1].append(_under(allowance, finding, today))
    for allowance in policy.allow:
        if allowance not in used:
            _tell_unused(allowance, packages, found)
    return [
        Checked(contents, tuple(sorted(findings, key=_rank)))
        for contents, findings in zip(packages, found, strict=True)
    ]


def _rank(finding: Finding) -> tuple[int, str, str]:
    return _RANKS[finding.severity], finding.rule, finding.member


def _find(subject: Subject) -> Iterator[Finding]:
    is_own = order_of(subject.contents) is not None
    for rule in RULES.values():
        severity = _severity(rule, subject.policy, is_own=is_own)
        if severity is None:
            continue
        hits = list(islice(rule.find(subject), _MOST_HITS + 1))
        for hit in hits[:_MOST_HITS]:
            yield Finding(
                rule=rule.id, severity=severity, what=hit.what, member=hit.member, hint=hit.hint
            )
        if len(hits) > _MOST_HITS:
            what = f"there are more than {_MOST_HITS} of these, and only the first are told"
            yield Finding(rule=rule.id, severity=severity, what=what)


def _severity(rule: Rule, policy: CheckPolicy, *, is_own: bool) -> Severity | None:
    """What the policy says of a rule, or what the rule says; None if it is off."""
    said = policy.severity.get(rule.id)
    if said is not None:
        return None if said == "off" else Severity(said)
    usual = (rule.own if is_own else None) or rule.severity
    return Severity.ERROR if policy.strict and usual is Severity.WARNING else usual


def _allowance(finding: Finding, contents: Contents, policy: CheckPolicy) -> Allowance | None:
    """The allowance for a finding; of several, the one that holds longest."""
    fitting = (
        allowance
        for allowance in policy.allow
        if allowance.rule == finding.rule
        and matches(contents.file_name, allowance.package)
        and matches(finding.member, allowance.member)
    )
    return max(fitting, key=lambda allowance: allowance.until, default=None)


def _under(allowance: Allowance | None, finding: Finding, today: date) -> Finding:
    if allowance is None:
        return finding
    if allowance.until < today:
        what = f"{finding.what} (allowed until {allowance.until}: {allowance.reason})"
        return msgspec.structs.replace(finding, what=what)
    return msgspec.structs.replace(finding, severity=Severity.NOTE, allowed=allowance.reason)


def _tell_unused(
    allowance: Allowance, packages: Sequence[Contents], found: list[list[Finding]]
) -> None:
    """Tell it once, with the first package that the allowance is for."""
    for contents, findings in zip(packages, found, strict=True):
        if matches(contents.file_name, allowance.package):
            what = f"the policy allows this until {allowance.until}, but there is nothing to allow"
            hint = f"remove it from the policy: {allowance.reason}"
            note = Finding(rule=allowance.rule, severity=Severity.NOTE, what=what, hint=hint)
            findings.append(note)
            return
