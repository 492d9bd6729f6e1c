"""Prepare build results for a package: vendor libraries, strip, and rewrite.

Build results are never changed. A package's tree consists of hard links, which cost nothing; only
changed files become copies.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from torchyard.host.files import link_or_copy
from torchyard.host.machine import processors
from torchyard.package.assemble.vendor import Vendored, find_vendored, new_names
from torchyard.package.elf.edit import DEBUG_SUFFIX, Rewrite, rewrite, strip
from torchyard.package.elf.file import Elf, read_elf
from torchyard.package.policy import Policy
from torchyard.package.zip.writer import members_of

Files = Mapping[PurePosixPath, Elf]
"""The dynamic ELF files, by their path relative to the install root."""


class PackingTrees(NamedTuple):
    """The trees for a package under preparation, and for its debug information."""

    root: Path
    debug: Path


class Prepared(NamedTuple):
    """A prepared package's tree, and one for its debug information.

    `needed` are all libraries that the files need, `versions` the symbol versions that the system
    must have, `bundled` the new names of vendored libraries, by their old ones.
    """

    root: Path
    debug: Path
    needed: frozenset[str]
    versions: frozenset[str]
    bundled: Mapping[str, str]


def make_trees(scratch: Path) -> PackingTrees:
    """Create empty folders; remove files of an earlier attempt."""
    packing = PackingTrees(scratch / "image", scratch / "debug")
    for folder in packing:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    return packing


def prepare(source: Path, scratch: Path, policy: Policy, vendor: Path | None) -> Prepared:
    """Prepare the files of a package, with the libraries that they need from `vendor`, if any."""
    packing = make_trees(scratch)
    files = dynamic_files(packing.root, copy_tree(source, packing.root))
    bring = find_vendored(files, (vendor,), policy) if vendor else ()
    return finish(packing, files, policy, bring=bring)


def copy_tree(source: Path, folder: Path) -> list[Path]:
    """Hard-link all files of a directory into another, following links; return the new paths.

    A file that already exists is an error.
    """
    made = []
    for member in members_of(source):
        copy = folder / member.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        link_or_copy(str(source / member.name), str(copy))
        made.append(copy)
    return made


def dynamic_files(root: Path, paths: Iterable[Path]) -> dict[PurePosixPath, Elf]:
    """Return the dynamic ELF files among these files below a directory."""
    found: dict[PurePosixPath, Elf] = {}
    for path in paths:
        elf = read_elf(path)
        if elf is not None and elf.dynamic:
            found[PurePosixPath(path.relative_to(root))] = elf
    return found


def finish(
    packing: PackingTrees,
    files: Files,
    policy: Policy,
    *,
    bring: Sequence[Vendored] = (),
    vendored: Sequence[Vendored] = (),
) -> Prepared:
    """Strip and rewrite files in place, and add vendored libraries.

    Libraries that are only `vendored` are in another package, with the same names as here.
    """
    names = new_names((*vendored, *bring))

    def change(file: PurePosixPath) -> None:
        path = packing.root / file
        _make_own(path)
        strip(path, packing.debug / f"{file}{DEBUG_SUFFIX}")
        rpath = policy.rpath(file, files[file].runpath or files[file].rpath)
        rewrite(path, _changes(rpath, policy, names))

    with ThreadPoolExecutor(processors()) as pool:
        list(pool.map(change, files))
        list(pool.map(lambda library: bring_along(packing.root, library, policy, names), bring))
    elfs = [*files.values(), *filter(None, (read_elf(library.source) for library in bring))]
    needed = frozenset(library for elf in elfs for library in elf.needed)
    versions = frozenset(version for elf in elfs for version in elf.versions)
    return Prepared(*packing, needed, versions, names)


def bring_along(root: Path, library: Vendored, policy: Policy, names: Mapping[str, str]) -> Path:
    """Copy a vendored library to its path below a directory, and set its new soname."""
    path = root / library.target
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(library.source, path)
    path.chmod(0o755)
    rewrite(path, _changes(policy.rpath(library.target), policy, names, library.target.name))
    return path


def _changes(
    rpath: str, policy: Policy, names: Mapping[str, str], soname: str | None = None
) -> Rewrite:
    return Rewrite(rpath=rpath, force_rpath=policy.force_rpath, soname=soname, needed=names)


def _make_own(path: Path) -> None:
    """Replace a hard link by a copy of the file."""
    copy = path.with_name(f"{path.name}.own")
    shutil.copyfile(path, copy)
    copy.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    copy.replace(path)
