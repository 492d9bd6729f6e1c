"""Apply a policy to hits: their severity, and whether they are allowed."""

from collections.abc import Collection
from datetime import date

import msgspec

from torchyard.checks.policy import Allowance, CheckPolicy
from torchyard.checks.rule import Finding, Hit, Rule, Severity
from torchyard.model.matrix import matches


class Enforcer:
    """Applies a policy, and records which allowances were used."""

    def __init__(self, policy: CheckPolicy, today: date) -> None:
        self._policy = policy
        self._today = today
        self._used: set[Allowance] = set()

    def severity(self, rule: Rule, *, is_own: bool = False, mild: bool = False) -> Severity | None:
        """Return the severity under the policy, or None if the rule is off."""
        severity = self._policy.severity.get(rule.id)
        if severity is not None:
            return None if severity == "off" else Severity(severity)
        usual = (rule.own if is_own else None) or rule.severity
        if mild and not is_own and usual is Severity.ERROR:
            usual = Severity.WARNING
        is_raised = self._policy.strict and usual is Severity.WARNING
        return Severity.ERROR if is_raised else usual

    def finding(self, rule: Rule, severity: Severity, hit: Hit, package: str) -> Finding:
        """Return a hit as a finding; a note if it is allowed in the file `package`."""
        found = Finding(
            rule=rule.id, severity=severity, what=hit.what, member=hit.member, hint=hit.hint
        )
        allowance = self._allowance(found, package)
        if allowance is None:
            return found
        self._used.add(allowance)
        if allowance.until < self._today:
            what = f"{found.what} (allowed until {allowance.until}: {allowance.reason})"
            return msgspec.structs.replace(found, what=what)
        return msgspec.structs.replace(found, severity=Severity.NOTE, allowed=allowance.reason)

    def _allowance(self, finding: Finding, package: str) -> Allowance | None:
        """Return the allowance for a finding; of several, the last to end."""
        fitting = (
            allowance
            for allowance in self._policy.allow
            if matches(finding.rule, allowance.rule)
            and matches(package, allowance.package)
            and matches(finding.member, allowance.member)
        )
        return max(fitting, key=lambda allowance: allowance.until, default=None)

    def unused(self, rules: Collection[str]) -> list[tuple[Allowance, Finding]]:
        """Return each unused allowance for these rules, with a note about it."""
        return [
            (allowance, _unused_note(allowance, named[0]))
            for allowance in self._policy.allow
            if allowance not in self._used
            and (named := [rule for rule in rules if matches(rule, allowance.rule)])
        ]


def _unused_note(allowance: Allowance, rule: str) -> Finding:
    this = "this" if allowance.rule == rule else f"`{allowance.rule}`"
    what = f"the policy allows {this} until {allowance.until}, but there is nothing to allow"
    hint = f"remove it from the policy: {allowance.reason}"
    return Finding(rule=rule, severity=Severity.NOTE, what=what, hint=hint)
