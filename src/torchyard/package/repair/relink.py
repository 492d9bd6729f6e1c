"""Change the libraries of an existing package, and bundle others."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from torchyard.compute.registry import PLAIN
from torchyard.errors import BuildError, SelectionError, UsageError
from torchyard.host.machine import processors
from torchyard.model.matrix import any_match
from torchyard.model.quantity import show_size
from torchyard.package.assemble.prepare import bring_along
from torchyard.package.assemble.vendor import Vendored, find_in_folders, find_vendored, new_names
from torchyard.package.elf.edit import DEBUG_SUFFIX, Rewrite, rewrite, strip
from torchyard.package.elf.file import Elf, read_elf
from torchyard.package.elf.image import MAGIC
from torchyard.package.policy import Policy, extension_policy, load_layouts, policy_for
from torchyard.package.repair.bill import add_to_bill
from torchyard.package.repair.draft import MemberChange, PackageDraft
from torchyard.package.repair.operations import (
    EVERYWHERE,
    Bundle,
    Relink,
    ReplaceNeeded,
    SetRpath,
    Strip,
)
from torchyard.package.repair.rpaths import InstalledFiles, entry_folders, resolving_rpath
from torchyard.package.versions import package_folder, unquoted
from torchyard.package.wheel.name import WheelName
from torchyard.package.zip.directory import ZipEntry
from torchyard.package.zip.unpack import beginning_of, unpack_member
from torchyard.package.zip.writer import Member


class Library(NamedTuple):
    """A library of a package: its member, its installed path, and its unpacked file."""

    member: str
    file: PurePosixPath
    path: Path
    elf: Elf


_LOCAL = re.compile(r"-[0-9][^-+]*\+([^-]+?)(?:-|\.zip$)")


def _wanted_globs(operations: Iterable[Relink]) -> tuple[str, ...]:
    """Return globs of the members that operations need."""
    globs = (EVERYWHERE if isinstance(o, Bundle) else o.members for o in operations)
    return tuple(dict.fromkeys(glob for group in globs for glob in group))


def relink(draft: PackageDraft, operations: Sequence[Relink], scratch: Path, compute: str) -> None:
    """Unpack and change libraries of a package.

    Stripped debug information goes to the folder `debug` of the scratch directory.
    """
    libraries = _unpacked(draft, _wanted_globs(operations), scratch / "image")
    _refuse_lone_globs(libraries, operations)
    if not libraries:
        draft.notes.append("no program or library in it is for Linux: others are unchanged")
    needs_policy = any(map(_asks_policy, operations))
    policy = _policy(draft, compute, libraries) if needs_policy else None
    bring = _brought(libraries, operations, policy) if policy else ()
    names = new_names(bring)
    if policy:
        draft.notes += _absences(libraries, operations, policy)
    root = _root(draft)
    installed = InstalledFiles(_installed(draft, name, root) for name in draft.entries)

    def change(library: Library) -> list[str]:
        changes = []
        if _is_stripped(library, operations):
            size = library.path.stat().st_size
            name = draft.renamed(library.member) or library.member
            debug = strip(library.path, scratch / "debug" / f"{name}{DEBUG_SUFFIX}")
            less = size - library.path.stat().st_size
            what = "debug information" if debug else "its symbol table"
            changes = [f"stripped of {what}, {show_size(less)}"] if less > 0 else []
        right = resolving_rpath(library.file, library.elf, installed, policy) if policy else ""
        forced = bool(policy and policy.force_rpath)
        rewrite(library.path, _rewrite(library, operations, (right, forced), names))
        return [*changes, *_changes(library)]

    with ThreadPoolExecutor(processors()) as pool:
        for library, changes in zip(libraries, pool.map(change, libraries), strict=True):
            if changes:
                draft.sources[library.member] = library.path
                draft.changes += [MemberChange(library.member, what) for what in changes]
    if policy:
        for vendored in bring:
            name = f"{root}{vendored.target}"
            path = bring_along(scratch / "added", vendored, policy, names)
            draft.added.append(Member(name, path, executable=True))
            draft.changes.append(MemberChange(name, f"brought along: {vendored.soname}"))
        add_to_bill(draft, bring)


def _asks_policy(operation: Relink) -> bool:
    return isinstance(operation, Bundle) or (
        isinstance(operation, SetRpath) and operation.value is None
    )


def _policy(draft: PackageDraft, compute: str, libraries: Iterable[Library]) -> Policy:
    """Return the rules for a package, by the given compute platform, or that of its version.

    Packages that need no GPU library are for CPUs. For wheels of extensions, the compute platform
    does not matter, as torch brings its libraries.
    """
    package = package_folder(WheelName.parse(draft.path.name).distribution) if draft.home else ""
    if package and _is_extension(draft, libraries):
        return extension_policy(draft.format.NAME, package)
    found = _LOCAL.search(unquoted(draft.path.name))
    compute = compute or (found[1] if found else "")
    compute = compute or ("" if any(map(_needs_gpu, libraries)) else PLAIN)
    if not compute:
        msg = f"the name `{draft.path.name}` does not show the package's compute platform"
        raise UsageError(msg, hint="name it: --compute cpu, or cu130, or rocm7.2")
    return policy_for(draft.format.NAME, compute, package)


def _is_extension(draft: PackageDraft, libraries: Iterable[Library]) -> bool:
    """Return whether libraries need torch's libraries that the package lacks."""
    torchs = tuple(glob for row in load_layouts().imported for glob in row.libraries)
    members = {name.rpartition("/")[2] for name in draft.entries}
    needed = {name for library in libraries for name in library.elf.needed}
    return any(any_match(name, torchs) for name in needed - members)


def _needs_gpu(library: Library) -> bool:
    """Return whether a library needs a library of any compute platform."""
    layouts = load_layouts()
    theirs = (*layouts.drivers, *(glob for row in layouts.wheels for glob in row.libraries))
    stems = tuple({glob.partition(".so")[0] for glob in theirs})
    return any(any_match(name.partition(".so")[0], stems) for name in library.elf.needed)


def _unpacked(draft: PackageDraft, globs: Sequence[str], folder: Path) -> list[Library]:
    """Unpack the dynamic ELF files that match any glob."""
    root = _root(draft)
    found = [
        entry
        for entry in draft.entries.values()
        if any_match(entry.name, globs) and beginning_of(draft.file, entry, len(MAGIC)) == MAGIC
    ]

    def unpack(entry: ZipEntry) -> Library | None:
        path = folder / entry.name
        unpack_member(draft.file, entry, path)
        elf = read_elf(path)
        if elf is None or not elf.dynamic:
            return None
        return Library(entry.name, _installed(draft, entry.name, root), path, elf)

    with ThreadPoolExecutor(processors()) as pool:
        return [library for library in pool.map(unpack, found) if library]


def _root(draft: PackageDraft) -> str:
    """Return the install root of a zip: its single top folder."""
    top, *others = {name.partition("/")[:2] for name in draft.entries} or {("", "")}
    return "" if draft.home or others or not top[1] else f"{top[0]}/"


def _installed(draft: PackageDraft, member: str, root: str) -> PurePosixPath:
    return PurePosixPath(draft.format.installed_path(member).removeprefix(root))


def _refuse_lone_globs(libraries: Sequence[Library], operations: Iterable[Relink]) -> None:
    for operation in operations:
        globs = () if isinstance(operation, Bundle) else operation.members
        for glob in globs:
            if glob not in EVERYWHERE and not any(
                any_match(lib.member, (glob,)) for lib in libraries
            ):
                msg = f"no program or library of the package matches `{glob}`"
                raise SelectionError(msg, hint="use the names in the archive: torch/lib/*.so")


def _is_stripped(library: Library, operations: Iterable[Relink]) -> bool:
    return any(isinstance(o, Strip) and any_match(library.member, o.members) for o in operations)


def _brought(
    libraries: Sequence[Library], operations: Iterable[Relink], policy: Policy
) -> tuple[Vendored, ...]:
    """Return the missing libraries in the directories."""
    folders = [folder for o in operations if isinstance(o, Bundle) for folder in o.folders]
    members = {library.file for library in libraries}

    def missing(library: Library) -> Iterator[str]:
        for name in library.elf.needed:
            if find_in_folders(name, folders) and not _reaches(library, name, members):
                yield name

    files = {lib.file: lib.elf._replace(needed=tuple(missing(lib))) for lib in libraries}
    return find_vendored(files, folders, policy) if folders else ()


def _absences(
    libraries: Sequence[Library], operations: Iterable[Relink], policy: Policy
) -> Iterator[str]:
    """Yield missing libraries that are in none of the directories."""
    folders = [folder for o in operations if isinstance(o, Bundle) for folder in o.folders]
    members = {library.file.name for library in libraries}
    needed = dict.fromkeys(name for library in libraries for name in library.elf.needed)
    for name in needed if folders else ():
        if not (name in members or policy.is_outside(name) or find_in_folders(name, folders)):
            yield f"{name} is needed, and not in {', '.join(map(str, folders))}"


def _reaches(library: Library, name: str, members: Collection[PurePosixPath]) -> bool:
    """Return whether a library finds another library of the package by its own rpath."""
    folders = entry_folders(library.file, library.elf.runpath or library.elf.rpath)
    return any(folder / name in members for folder in folders)


def _rewrite(
    library: Library,
    operations: Iterable[Relink],
    right: tuple[str, bool],
    brought: Mapping[str, str],
) -> Rewrite:
    """Return all changes to a library. Libraries that need a bundled one get an rpath to it.

    `right` is the policy's rpath, and whether it is a DT_RPATH.
    """
    needed, more = dict(brought), list[str]()
    rpath, forced = None, False
    if not brought.keys().isdisjoint(library.elf.needed):
        rpath, forced = right
    for operation in operations:
        if isinstance(operation, Bundle) or not any_match(library.member, operation.members):
            continue
        if isinstance(operation, ReplaceNeeded):
            if operation.old:
                needed[operation.old] = operation.new
            else:
                more.append(operation.new)
        elif isinstance(operation, SetRpath):
            given = operation.value
            rpath, forced = right if given is None else (given, bool(library.elf.rpath))
    return Rewrite(rpath=rpath, force_rpath=forced, needed=needed, more_needed=tuple(more))


def _changes(before: Library) -> Iterator[str]:
    """Yield descriptions of the changes to a library."""
    old, new = before.elf, read_elf(before.path)
    if new is None or (new.soname, new.versions) != (old.soname, old.versions):
        msg = f"`{before.member}` was damaged by the changes"
        hint = "`strip` can't handle some files rearranged by other tools: leave it out"
        raise BuildError(msg, hint=hint)
    for kind, was, now in (("rpath", old.rpath, new.rpath), ("runpath", old.runpath, new.runpath)):
        if was != now:
            yield f"{kind} {was or 'none'} → {now or 'none'}"
    gone = [name for name in old.needed if name not in new.needed]
    come = [name for name in new.needed if name not in old.needed]
    if gone or come:
        yield f"needs {', '.join(come) or 'nothing'} instead of {', '.join(gone) or 'nothing'}"
