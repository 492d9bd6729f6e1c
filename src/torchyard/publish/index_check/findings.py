"""The findings of the index check: counted by rule, with samples, under a policy."""

from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

import msgspec

from torchyard.checks.enforce import Enforcer
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.registry import INDEX_RULES
from torchyard.checks.rule import Finding, Hit, Rule, Severity

KEPT = 100
"""The most findings to keep for a rule: an index may have millions of files."""


class IndexHit(NamedTuple):
    """A finding of a rule, and its page or file."""

    rule: Rule
    where: str
    what: str


class IndexFindings:
    """Applies a policy to hits, counts them by rule and severity, and keeps the first of each."""

    def __init__(self, policy: CheckPolicy, today: date) -> None:
        self.counts: Counter[tuple[str, Severity]] = Counter()
        self.kept: list[Finding] = []
        self._enforcer = Enforcer(policy, today)

    def add(self, hits: Iterable[IndexHit]) -> None:
        for rule, where, what in hits:
            severity = self._enforcer.severity(rule)
            if severity is not None:
                self._keep(self._enforcer.finding(rule, severity, Hit(what, where), where))

    def add_unused_allowances(self, url: str) -> None:
        """Add notes for allowances of the policy that the index at `url` does not need."""
        for _, note in self._enforcer.unused(INDEX_RULES):
            what = f"{note.what}; {note.hint}"
            self._keep(msgspec.structs.replace(note, what=what, hint="", member=url))

    def _keep(self, finding: Finding) -> None:
        key = finding.rule, finding.severity
        self.counts[key] += 1
        if self.counts[key] <= KEPT:
            self.kept.append(finding)
