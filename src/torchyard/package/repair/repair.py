"""Repair a package: rewrite changed members, and copy all others verbatim.

The same package and operations give the same bytes. An ambiguous archive is refused, as its
copy would look valid.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from torchyard.errors import UsageError
from torchyard.package.formats import format_named, suffixes
from torchyard.package.repair.bill import rename_in_bill
from torchyard.package.repair.draft import MemberChange, PackageDraft
from torchyard.package.repair.operations import Operation, Relink, Retag, Reversion
from torchyard.package.repair.retag import (
    build_version_text,
    has_version,
    metadata_text,
    new_version,
    version_text,
    wheel_text,
)
from torchyard.package.versions import is_version, unquoted
from torchyard.package.wheel.name import WheelName
from torchyard.package.zip.writer import write_debug

_TELLS_VERSION = re.compile(r"[^/]+/(?:_?version\.py|build-version)")
_MAY_TELL = re.compile(r"[^/]+/(?:_?version|__init__)\.py")


class Repaired(NamedTuple):
    """A repaired package, and the archive with stripped debug information.

    The notes are about changes that failed or remain to be done.
    """

    path: Path
    changed: tuple[MemberChange, ...]
    debug: Path | None = None
    notes: tuple[str, ...] = ()


def new_name(file_name: str, operations: Sequence[Operation]) -> str:
    """Return the new name of a package without reading it."""
    if not file_name.endswith(suffixes()):
        msg = f"`{file_name}` is not a repairable package"
        raise UsageError(msg, hint="name a wheel (.whl) or a libtorch archive (.zip)")
    tags = [(o.python, o.abi, o.platform) for o in operations if isinstance(o, Retag)]
    change = partial(_version, operations=operations)
    return format_named(file_name).new_name(file_name, change, tags)


def repair_target(path: Path, operations: Sequence[Operation], out: Path) -> Path:
    """Return the path of the new package; raise if it would replace the old one."""
    target = out / new_name(path.name, operations)
    if target.exists() and target.samefile(path):
        msg = f"`{target}` would replace the original package"
        raise UsageError(msg, hint="write to another directory: -o DIR")
    return target


def repair(
    path: Path, operations: Sequence[Operation], out: Path, *, compute: str = ""
) -> Repaired:
    """Apply all operations to a wheel or a libtorch zip, and write it into a directory.

    `compute` is the compute platform of packages whose version and libraries do not show it; only
    policies use it.
    """
    target = repair_target(path, operations, out)
    with path.open("rb") as file, TemporaryDirectory(prefix="torchyard-repair-") as scratch:
        draft = PackageDraft(path, file)
        if any(isinstance(operation, Retag) for operation in operations):
            _retag(draft, target.name)
        if any(isinstance(operation, Reversion) for operation in operations):
            _reversion(draft, operations)
        relinks = [o for o in operations if isinstance(o, Relink)]
        if relinks:
            from torchyard.package.repair.relink import (  # noqa: PLC0415 - slow to import
                relink,
            )

            relink(draft, relinks, Path(scratch), compute)
        draft.write(target)
        debug = write_debug(Path(scratch, "debug"), target)
        return Repaired(target, tuple(draft.changes), debug, tuple(draft.notes))


def _retag(draft: PackageDraft, new: str) -> None:
    if not draft.home:
        msg = f"`{draft.path.name}` is not a wheel, and has no tags"
        raise UsageError(msg, hint="leave the options for tags out")
    was, tag = WheelName.parse(draft.path.name).tag, WheelName.parse(new).tag
    member = f"{draft.home}WHEEL"
    draft.replace(member, wheel_text(draft.read(member), tag), f"tags {was} → {tag}")


def _reversion(draft: PackageDraft, operations: Iterable[Operation]) -> None:
    """Change the version everywhere in the package."""
    old = _old_version(draft)
    new = _version(old, operations)
    what = f"version {old} → {new}"
    for name in filter(_TELLS_VERSION.fullmatch, draft.entries):
        change = build_version_text if name.endswith("build-version") else version_text
        draft.replace(name, change(draft.read(name), old, new), what)
    if draft.home:
        member = f"{draft.home}METADATA"
        draft.replace(member, metadata_text(draft.read(member), new), what)
        stem = draft.home.removesuffix(".dist-info/")
        renamed = f"{stem.rpartition('-')[0]}-{new}"
        for kind in (".dist-info/", ".data/") if renamed != stem else ():
            draft.rename(f"{stem}{kind}", f"{renamed}{kind}")
    rename_in_bill(draft, new)
    for name in filter(_MAY_TELL.fullmatch, draft.entries if old != new else ()):
        if has_version(draft.current(name), old):
            draft.notes.append(f"the old version {old} is still in {name}")


def _old_version(draft: PackageDraft) -> str:
    if draft.home:
        return WheelName.parse(draft.path.name).version
    for name in draft.entries:
        if name.endswith("/build-version") and _TELLS_VERSION.fullmatch(name):
            text = draft.read(name).decode(errors="replace").strip()
            if is_version(text):
                return text
    return unquoted(draft.path.stem).rpartition("-")[2]


def _version(version: str, operations: Iterable[Operation]) -> str:
    """Return the new version; if no operation changes it, the old one in its spelling."""
    for operation in operations:
        if isinstance(operation, Reversion):
            version = new_version(version, operation.version, operation.local)
    return version
