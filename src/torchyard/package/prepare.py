"""Preparing what was built for a package: bring libraries along, strip, and rewrite.

What was built is never changed. Files that will be are copied; the others get a second name, which
costs nothing.
"""

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

from torchyard.host.machine import processors
from torchyard.package.archive import members_of
from torchyard.package.elf import Elf, read_elf
from torchyard.package.elf_edit import DEBUG_SUFFIX, Rewrite, rewrite, strip
from torchyard.package.policy import Policy
from torchyard.package.vendor import Vendored, find_vendored

_TOP = PurePosixPath()
_NONE: Mapping[str, str] = MappingProxyType({})


class Prepared(NamedTuple):
    """A tree for a package, and another for debuggers.

    Libraries that were brought along have new `names`; `needed` are all that the others name, and
    `versions` those of symbols that the system must have.
    """

    root: Path
    debug: Path
    names: Mapping[str, str]
    needed: frozenset[str]
    versions: frozenset[str]


def prepare(  # noqa: PLR0913 - what, where, by which rules, with what
    source: Path,
    scratch: Path,
    policy: Policy,
    *,
    vendor: Path | None = None,
    names: Mapping[str, str] = _NONE,
    base: PurePosixPath = _TOP,
) -> Prepared:
    """Prepare the files of a package, which will be installed below `base`.

    Without `vendor` nothing is brought along; another package did, and gave it the `names`.
    """
    root, debug = scratch / "image", scratch / "debug"
    for folder in (root, debug):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    files = _copy(source, root, base)
    brought = find_vendored(files, vendor, policy) if vendor else ()
    names = {**names, **{library.soname: library.target.name for library in brought}}

    def finish(file: PurePosixPath) -> None:
        path = root / file.relative_to(base)
        strip(path, debug / f"{file}{DEBUG_SUFFIX}")
        rewrite(path, _changes(file, policy, names))

    def bring(library: Vendored) -> None:
        path = root / library.target.relative_to(base)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library.source, path)
        path.chmod(0o755)
        rewrite(path, _changes(library.target, policy, names, soname=library.target.name))

    with ThreadPoolExecutor(processors()) as pool:
        list(pool.map(finish, files))
        list(pool.map(bring, brought))
    needed = frozenset(library for elf in files.values() for library in elf.needed)
    elfs = [*files.values(), *filter(None, (read_elf(library.source) for library in brought))]
    versions = frozenset(version for elf in elfs for version in elf.versions)
    return Prepared(root, debug, names, needed, versions)


def _changes(
    file: PurePosixPath, policy: Policy, names: Mapping[str, str], soname: str | None = None
) -> Rewrite:
    return Rewrite(
        rpath=policy.rpath(file), force_rpath=policy.force_rpath, soname=soname, needed=names
    )


def _copy(source: Path, root: Path, base: PurePosixPath) -> dict[PurePosixPath, Elf]:
    """Copy what will be changed and link the rest; return what the loader will have to do with."""
    files: dict[PurePosixPath, Elf] = {}
    for member in members_of(source):
        path, copy = source / member.name, root / member.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        elf = read_elf(path)
        if elf is not None and elf.dynamic:
            files[base / member.name] = elf
            shutil.copyfile(path, copy)
            copy.chmod(0o755 if member.executable else 0o644)
        else:
            _link(path, copy)
    return files


def _link(path: Path, copy: Path) -> None:
    try:
        copy.hardlink_to(path.resolve())
    except OSError:  # another disk, or a file system without links
        shutil.copy(path, copy)
