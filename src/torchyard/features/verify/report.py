"""The origins of packages, as their makers signed them."""

from collections.abc import Mapping
from typing import Literal

from torchyard.errors import CheckError
from torchyard.model.quantity import listed
from torchyard.model.values import Reported
from torchyard.terminal.tables import Lines, indented, styled
from torchyard.terminal.untrusted import printable


class VerifiedPackage(Reported, kw_only=True):
    """A package and its origin, or the `fault` for which that is unproven.

    `confined` is true if it and all that it was made from were built from scratch in a sandbox.
    """

    file: str
    fault: str = ""
    maker: str = ""
    key: str = ""
    job: str = ""
    source: str = ""
    commit: str = ""
    confined: bool = False
    torchyard: str = ""
    started: str = ""
    toolchain: Mapping[str, str] = {}


class OriginReport(Reported, kw_only=True):
    """`torchyard verify --json`."""

    version: Literal[1] = 1
    packages: list[VerifiedPackage]


def verify_text(report: OriginReport) -> Lines:
    for package in report.packages:
        name = printable(package.file)
        if package.fault:
            yield styled(f"{name}: {printable(package.fault)}", "bold red")
            continue
        yield styled(f"{name}: made by {printable(package.maker)}", "bold")
        facts = {
            "job": package.job,
            "source": f"{package.source or 'a directory'} {package.commit}",
            "sandbox": "all of it" if package.confined else "not all of it",
            "torchyard": f"{package.torchyard}, {package.started}",
            "key": package.key,
        }
        for word, text in (*facts.items(), *package.toolchain.items()):
            yield indented(f"{printable(word):<10} {printable(text).strip()}", 2)


def verify_error(report: OriginReport) -> CheckError | None:
    """Return which packages are unproven."""
    unproven = [package.file for package in report.packages if package.fault]
    if not unproven:
        return None
    msg = f"the origin of {listed(unproven)} is not proven"
    return CheckError(msg)
