"""The packages of a result: the one definition that check, smoke and publish share."""

import os
from pathlib import Path

from torchyard.errors import BuildError
from torchyard.host.own_files import STAMP
from torchyard.package.formats import suffixes
from torchyard.package.zip.writer import DEBUG

PROVENANCE = ".provenance"
"""The end of a wheel's sidecar with its attestations (PEP 740)."""

STATEMENT = ".intoto.jsonl"
"""The end of a package's sidecar with a signed statement of its origin."""


def is_package_name(file_name: str) -> bool:
    """Return whether a file is a package by its name; debug archives are not."""
    return file_name.endswith(suffixes()) and not file_name.endswith(DEBUG)


def delivered_packages(folder: Path) -> list[Path]:
    """Return the packages at the top of a package job's result, sorted by name.

    Only debug archives, provenances and statements may be beside them. Raise BuildError for other
    files, as no check would examine them.
    """
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    packages = [Path(entry) for entry in entries if _is_package(entry)]
    names = {path.name for path in packages}
    for entry in entries:
        if entry.name not in names and not _is_beside(entry, names):
            msg = f"a package job delivered `{entry.name}`, which is not a package"
            hint = f"let its steps leave only files that end in {', '.join(suffixes())} in {{out}}"
            raise BuildError(msg, hint=hint)
    if not packages:
        msg = f"a package job delivered no package in `{folder}`"
        raise BuildError(msg, hint="let a step put it into {out}, at the top")
    return packages


def _is_package(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) and is_package_name(entry.name)


def _is_beside(entry: os.DirEntry[str], packages: set[str]) -> bool:
    """Return whether a file is a package's debug archive, provenance or statement.

    A step with `torchyard repair` leaves a stamp, too.
    """
    is_debug = entry.name.endswith(DEBUG) or entry.name == STAMP
    is_sidecar = any(entry.name.removesuffix(end) in packages for end in (PROVENANCE, STATEMENT))
    return entry.is_file(follow_symlinks=False) and (is_debug or is_sidecar)
