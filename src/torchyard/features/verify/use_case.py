"""Verify who made packages, and from what."""

from collections.abc import Sequence
from pathlib import Path

from torchyard.errors import CheckError, SelectionError, UsageError
from torchyard.features.verify.report import OriginReport, VerifiedPackage
from torchyard.package.statement import package_origin
from torchyard.publish.staged import find_packages
from torchyard.store.makers import TRUST, Trust, load_trust


def verify_packages(packages: Sequence[str | Path], *, policy: str | None = None) -> OriginReport:
    """Return the origins of packages, by the statements beside them.

    Args:
        packages: Files and directories.
        policy: The trust file, instead of the machine's.
    """
    trust = load_trust(policy)
    if trust is None:
        msg = "whom do you trust?"
        raise UsageError(msg, hint=f"--policy names a trust file, or {TRUST} does")
    found = find_packages(map(Path, packages))
    if not found:
        msg = f"there is no package in {', '.join(map(str, packages))}"
        raise SelectionError(msg, hint="name packages, or directories with packages")
    return OriginReport(packages=[_verified(path, trust) for path in found])


def _verified(path: Path, trust: Trust) -> VerifiedPackage:
    try:
        origin = package_origin(path, trust)
    except CheckError as error:
        return VerifiedPackage(file=str(path), fault=str(error))
    return VerifiedPackage(file=str(path), **origin._asdict())
