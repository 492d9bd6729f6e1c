"""Which packages have been checked already: by reports that lie beside them."""

from collections.abc import Collection, Iterable
from datetime import date
from pathlib import Path

import msgspec

from torchyard.checks.check import apply_rules
from torchyard.checks.policies import policy_digest
from torchyard.checks.policy import CheckPolicy
from torchyard.package.contents import Contents
from torchyard.publish.staged import Findings, Judge
from torchyard.version import __version__

_REPORTS = "*check.json"


class _Package(msgspec.Struct):
    sha256: str


class _Report(msgspec.Struct):
    """What counts of `torchyard check --json`."""

    torchyard: str
    policy_digest: str
    date: date
    findings: dict[str, int]
    packages: list[_Package]


def proven(paths: Iterable[Path], policy: CheckPolicy, today: date) -> set[str]:
    """The digests of packages that a report below some directories has no error for.

    It counts only if the same rules were asked under the same policy, of which nothing has ended.
    """
    wanted = policy_digest(policy)
    ends = min((allowance.until for allowance in policy.allow), default=date.max)
    found: set[str] = set()
    for place in (place for path in paths if path.is_dir() for place in path.rglob(_REPORTS)):
        try:
            report = msgspec.json.decode(place.read_bytes(), type=_Report)
        except msgspec.DecodeError:
            continue  # somebody else's
        current = today <= ends or report.date == today
        same = report.policy_digest == wanted and report.torchyard == __version__
        if same and current and not report.findings.get("error"):
            found.update(package.sha256 for package in report.packages)
    return found - {""}


def judge_by(policy: CheckPolicy, today: date, trusted: Collection[str]) -> Judge:
    """Check each package by itself, but for those that were."""

    def judge(sha256: str, contents: Contents) -> Findings:
        return () if sha256 in trusted else apply_rules([contents], policy, today)[0].findings

    return judge
