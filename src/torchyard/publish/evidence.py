"""Evidence for packages, by digest and by maker: reports of a plan's own check and smoke jobs.

Reports beside packages are no evidence: the step that made the package may have written them.
"""

from collections.abc import Collection
from datetime import date
from typing import NamedTuple

import msgspec

from torchyard.checks.check import apply_rules
from torchyard.checks.policies import policy_digest
from torchyard.checks.policy import CheckPolicy
from torchyard.checks.subject import Torches
from torchyard.model.recipe import Stage
from torchyard.model.values import UNDECODABLE
from torchyard.package.contents import Contents
from torchyard.publish.plan_results import PlanResults
from torchyard.publish.staged import Findings, Judge
from torchyard.version import __version__


class _CheckedPackage(msgspec.Struct):
    sha256: str


class _CheckReport(msgspec.Struct):
    """The used fields of a `check.json`."""

    torchyard: str
    policy_digest: str
    day: date = msgspec.field(name="date")
    findings: dict[str, int]
    packages: list[_CheckedPackage]


class _TriedPackage(msgspec.Struct):
    sha256: str | None
    tried: bool
    works: bool


class _SmokeReport(msgspec.Struct):
    """The used fields of a `smoke.json`."""

    packages: list[_TriedPackage]


class Evidence(NamedTuple):
    """The findings of torchyard's own jobs about packages."""

    checked: frozenset[str] = frozenset()
    """The sha256 of packages without errors under the policy."""
    working: frozenset[tuple[str, str]] = frozenset()
    """The cell and sha256 of installed packages that passed all smoke tests."""
    finished: frozenset[str] = frozenset()
    """The cells whose smoke jobs succeeded, with any steps."""
    confined: frozenset[str] = frozenset()
    """The cells whose packages and inputs were made in a sandbox."""


NO_EVIDENCE = Evidence()


def read_evidence(results: PlanResults, policy: CheckPolicy, today: date) -> Evidence:
    """Read the reports of a plan's jobs.

    A check's report only counts if it has the same rules and policy, and no expired allowance. A
    smoke job's report only counts for the job's cell, as the job runs code of the package.
    """
    return Evidence(
        checked=frozenset(_checked(results, policy, today)),
        working=frozenset(_working(results)),
        finished=frozenset(results.succeeded(Stage.SMOKE)),
        confined=frozenset(results.confined()),
    )


def _checked(results: PlanResults, policy: CheckPolicy, today: date) -> set[str]:
    wanted = policy_digest(policy)
    ends = min((allowance.until for allowance in policy.allow), default=date.max)
    found: set[str] = set()
    for _, data in results.reports(Stage.CHECK, "check.json"):
        try:
            report = msgspec.json.decode(data, type=_CheckReport)
        except UNDECODABLE:
            continue  # from another version of torchyard
        current = today <= ends or report.day == today
        same = report.policy_digest == wanted and report.torchyard == __version__
        if same and current and not report.findings.get("error"):
            found.update(package.sha256 for package in report.packages)
    return found - {""}


def _working(results: PlanResults) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for cell, data in results.reports(Stage.SMOKE, "smoke.json"):
        try:
            report = msgspec.json.decode(data, type=_SmokeReport)
        except UNDECODABLE:
            continue
        works = (package for package in report.packages if package.tried and package.works)
        found.update((cell, work.sha256) for work in works if work.sha256)
    return found


def judge_by(
    policy: CheckPolicy, today: date, checked: Collection[str], torches: Torches = tuple
) -> Judge:
    """Check each package that was not checked yet."""

    def judge(sha256: str, contents: Contents) -> Findings:
        if sha256 in checked:
            return ()
        return apply_rules([contents], policy, today, torches=torches)[0].findings

    return judge
