"""Findings in packages."""

from typing import Literal

from torchyard.checks.checked import CheckedPackage, findings_error
from torchyard.checks.text import packages_text
from torchyard.errors import CheckError
from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines


class CheckReport(Reported, kw_only=True):
    """`torchyard check --json`: `findings` counts them by severity, over all packages.

    `policy_digest` is of the policy's content, regardless of its name.
    """

    version: Literal[1] = 1
    torchyard: str
    policy: str
    policy_digest: str
    date: str
    findings: dict[str, int]
    packages: list[CheckedPackage]


def check_text(report: CheckReport) -> Lines:
    return packages_text(report.packages)


def check_error(report: CheckReport) -> CheckError | None:
    return findings_error(report.packages)
