"""A rebuilt package, and its differences from the original."""

from collections.abc import Sequence
from typing import Literal

from torchyard.errors import DifferenceError
from torchyard.model.values import Reported


class RebuildReport(Reported, kw_only=True):
    """`torchyard rebuild --json`: `sha256` is the package's, `differences` are the new one's.

    `made` is the new package, if kept. `sandbox` is from the job spec in the package.
    """

    version: Literal[1] = 1
    package: str
    sha256: str
    made: str | None
    sandbox: str | None
    differences: Sequence[str]


def rebuild_text(report: RebuildReport) -> str:
    if report.differences:
        return ""
    return f"{report.sha256}  {report.package}: the same, byte for byte\n"


def rebuild_error(report: RebuildReport) -> DifferenceError | None:
    if not report.differences:
        return None
    listed = "".join(f"\n  {line}" for line in report.differences)
    msg = f"`{report.package}` was made again, and is not the same:{listed}"
    hint = f"compare it with {report.made}" if report.made else "--work DIR keeps the new one"
    if report.sandbox == "none":
        hint += "; without a sandbox, paths of the machine may be in it"
    return DifferenceError(msg, hint=hint)
