"""Verify who made packages, and from what."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from torchyard.errors import CheckError, SelectionError, UsageError
from torchyard.features.verify.report import OriginReport, VerifiedPackage
from torchyard.package.delivered import STATEMENT
from torchyard.package.statement import PackageOrigin, check_statement, package_origin
from torchyard.publish.channel.head import HEAD
from torchyard.publish.channel.layout import key_of, parse_part
from torchyard.publish.staged import find_packages
from torchyard.store.makers import TRUST, Trust, load_trust
from torchyard.workspace.locations import read_channel


def verify_packages(packages: Sequence[str | Path], *, policy: str | None = None) -> OriginReport:
    """Return the origins of packages, by the statements beside them.

    Args:
        packages: Files, directories, and directories or addresses of channels.
        policy: The trust file, instead of the machine's.
    """
    trust = load_trust(policy)
    if trust is None:
        msg = "whom do you trust?"
        raise UsageError(msg, hint=f"--policy names a trust file, or {TRUST} does")
    found = [package for where in packages for package in _verified_at(where, trust)]
    if not found:
        msg = f"there is no package in {', '.join(map(str, packages))}"
        raise SelectionError(msg, hint="name packages, directories with packages, or channels")
    return OriginReport(packages=found)


def _verified_at(where: str | Path, trust: Trust) -> Iterator[VerifiedPackage]:
    """Yield the packages of a file, a directory or a channel, which may be on a web server."""
    if "://" not in str(where) and not Path(where, HEAD).is_file():
        for path in find_packages([Path(where)]):
            yield _verified(str(path), partial(package_origin, path, trust))
        return
    channel = read_channel(f"{where}/", "")
    head = channel.head()
    for part in head.parts:
        for entry in channel.state(head, part).entries:
            data = channel.read(f"{key_of(parse_part(part), entry)}{STATEMENT}")
            prove = partial(check_statement, data, entry.file, entry.sha256, trust)
            yield _verified(entry.file, prove)


def _verified(file: str, prove: Callable[[], PackageOrigin]) -> VerifiedPackage:
    try:
        return VerifiedPackage(file=file, **prove()._asdict())
    except CheckError as error:
        return VerifiedPackage(file=file, fault=str(error))
