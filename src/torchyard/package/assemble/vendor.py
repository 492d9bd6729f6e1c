"""Vendored third-party libraries: those that a package needs, and their names."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import file_digest
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from torchyard.errors import BuildError
from torchyard.model.matrix import any_match
from torchyard.package.elf.file import Elf, read_elf
from torchyard.package.policy import Policy

_DIGITS = 8
"""The number of a digest's digits in a file's name."""


class Vendored(NamedTuple):
    """A vendored library: its file, its old name, and its new path in the package."""

    source: Path
    soname: str
    target: PurePosixPath


class Use(NamedTuple):
    """A file of the package, or a vendored one, and the libraries that it needs."""

    file: PurePosixPath
    needed: Sequence[str]


def vendored_name(library: Path, policy: Policy) -> str:
    """Return the name of a library in a package, with its digest, so that packages can't clash."""
    if policy.keeps_name(library.name):
        return library.name
    with library.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()[:_DIGITS]
    stem, suffix, version = library.name.partition(".so")
    return f"{stem}-{digest}{suffix}{version}"


def new_names(libraries: Iterable[Vendored]) -> dict[str, str]:
    """Return the new names of vendored libraries, by their old names."""
    return {library.soname: library.target.name for library in libraries}


def find_vendored(
    files: Mapping[PurePosixPath, Elf], vendors: Sequence[Path], policy: Policy
) -> tuple[Vendored, ...]:
    """Return the libraries that a package must vendor, including their own dependencies.

    Fail if a needed library is neither in the package nor in a directory of vendored libraries, and
    may not be outside of the package. Paths of files are relative to the install root.
    """
    found: dict[str, Vendored] = {}
    waiting = [Use(file, elf.needed) for file, elf in sorted(files.items())]
    while waiting:
        use = waiting.pop(0)
        for library in use.needed:
            is_present = library in found or policy.is_outside(library)
            if is_present or _is_inside(library, use.file, files, policy):
                continue
            source = find_in_folders(library, vendors)
            elf = read_elf(source) if source else None
            if source is None or elf is None:
                raise _missing(library, use.file, vendors)
            target = policy.folders[0] / vendored_name(source, policy)
            found[library] = Vendored(source, library, target)
            opened = _opened(library, source.parent, policy)
            waiting.append(Use(target, (*elf.needed, *opened)))
    return tuple(found[library] for library in sorted(found))


def find_in_folders(name: str, folders: Iterable[Path]) -> Path | None:
    """Return the file of this name in the first directory that has one, or None."""
    return next((path for folder in folders if (path := folder / name).is_file()), None)


def _opened(library: str, vendor: Path, policy: Policy) -> list[str]:
    """Return the vendored libraries that a library opens at run time."""
    globs = policy.opened_by(library)
    return sorted(file.name for file in vendor.iterdir() if any_match(file.name, globs))


def _is_inside(
    library: str, user: PurePosixPath, files: Mapping[PurePosixPath, Elf], policy: Policy
) -> bool:
    return any(folder / library in files for folder in (user.parent, *policy.folders))


def _missing(library: str, user: PurePosixPath, vendors: Iterable[Path]) -> BuildError:
    folders = ", ".join(f"`{folder}`" for folder in vendors)
    msg = (
        f"`{user}` needs `{library}`, which is neither in the package nor in {folders}, "
        "is in no wheel that the package may rely on, and is not part of every system"
    )
    hint = (
        "put it there (`vendor/` of a core's result), link it statically, or, if it is part of "
        "every system, add it to data/layouts.toml"
    )
    return BuildError(msg, hint=hint)
