"""From what was built to a package: check, bring along, strip, rewrite, write.

What was built is never changed. Files that will be are copied; the others get a second name, which
costs nothing.
"""

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.host.machine import processors
from torchyard.package.archive import members_of, writing
from torchyard.package.elf import Elf, read_elf
from torchyard.package.elf_edit import DEBUG_SUFFIX, Rewrite, rewrite, strip
from torchyard.package.libtorch import write_libtorch
from torchyard.package.policy import Layout, Policy, policy_for
from torchyard.package.same_core import check_core
from torchyard.package.vendor import Vendored, find_vendored
from torchyard.package.versions import wheel_tags
from torchyard.package.wheel import write_wheel


class Assembled(NamedTuple):
    """A package, and the archive of its debug information if it had any."""

    package: Path
    debug: Path | None


def assemble_wheel(  # noqa: PLR0913 - what a wheel is made of
    *,
    install: Path,
    vendor: Path,
    image: Path,
    scratch: Path,
    out: Path,
    name: str,
    version: str,
    python: str,
    platform_tag: str,
    compute: str,
    requires: Sequence[str] = (),
    order: Path | None = None,
) -> Assembled:
    """Make a wheel from a core (`install`, `vendor`) and the bindings for one Python (`image`)."""
    package = name.replace("-", "_")
    if not (image / package).is_dir():
        msg = f"`{image}` has no folder `{package}`"
        raise BuildError(msg, hint="the package's folder must be called like the project")
    check_core(install, image / package)
    prepared, debug = _prepare(image, vendor, scratch, policy_for(Layout.WHEEL, compute, package))
    wheel = write_wheel(
        prepared,
        out,
        name=name,
        version=version,
        tags=wheel_tags(python),
        platform_tag=platform_tag,
        requires=requires,
        order=order,
    )
    return Assembled(wheel, _write_debug(debug, wheel))


def assemble_libtorch(  # noqa: PLR0913 - what a zip is made of
    *,
    install: Path,
    vendor: Path,
    scratch: Path,
    out: Path,
    name: str,
    version: str,
    compute: str,
    git_hash: str,
    order: Path | None = None,
) -> Assembled:
    """Make the zip for C++ from a core."""
    prepared, debug = _prepare(install, vendor, scratch, policy_for(Layout.LIBTORCH, compute, ""))
    zipped = write_libtorch(
        prepared, out, name=name, version=version, git_hash=git_hash, order=order
    )
    return Assembled(zipped, _write_debug(debug, zipped))


def _prepare(source: Path, vendor: Path, scratch: Path, policy: Policy) -> tuple[Path, Path]:
    """Make the files of a package in the scratch directory, and beside them those for debuggers."""
    root, debug = scratch / "image", scratch / "debug"
    for folder in (root, debug):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    files = _copy(source, root)
    brought = find_vendored(files, vendor, policy)
    names = {library.soname: library.target.name for library in brought}

    def finish(file: PurePosixPath) -> None:
        path = root / file
        strip(path, debug / f"{file}{DEBUG_SUFFIX}")
        rewrite(path, _changes(file, policy, names))

    def bring(library: Vendored) -> None:
        path = root / library.target
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library.source, path)
        path.chmod(0o755)
        rewrite(path, _changes(library.target, policy, names, soname=library.target.name))

    with ThreadPoolExecutor(processors()) as pool:
        list(pool.map(finish, files))
        list(pool.map(bring, brought))
    return root, debug


def _changes(
    file: PurePosixPath, policy: Policy, names: Mapping[str, str], soname: str | None = None
) -> Rewrite:
    return Rewrite(
        rpath=policy.rpath(file), force_rpath=policy.force_rpath, soname=soname, needed=names
    )


def _copy(source: Path, root: Path) -> dict[PurePosixPath, Elf]:
    """Copy what will be changed and link the rest; return what the loader will have to do with."""
    files: dict[PurePosixPath, Elf] = {}
    for member in members_of(source):
        path, copy = source / member.name, root / member.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        elf = read_elf(path)
        if elf is not None and elf.dynamic:
            files[PurePosixPath(member.name)] = elf
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


def _write_debug(debug: Path, package: Path) -> Path | None:
    """Write the debug information beside the package, if there is any."""
    members = members_of(debug)
    if not members:
        return None
    path = package.with_name(f"{package.stem}-debug.zip")
    with writing(path) as archive:
        archive.add(members)
    return path
