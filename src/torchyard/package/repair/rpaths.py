"""The rpath of a library in a layout, including the entries that it still needs.

A wheel from elsewhere may have its libraries in any folder, such as `NAME.libs`. An entry by
which a needed library is found stays, but relative to the file.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from torchyard.package.elf.file import Elf
from torchyard.package.policy import Policy, from_origin

_ORIGIN = re.compile(r"\$ORIGIN\b|\$\{ORIGIN\}")
_UP = ".."
_ENVIRONMENT = frozenset(map(PurePosixPath, ("../..", "../../../lib")))
"""The path from site-packages to an environment's `lib`, where some wheels put libraries."""


class InstalledFiles:
    """The files of a package by their installed paths."""

    def __init__(self, paths: Iterable[PurePosixPath]) -> None:
        self._paths = frozenset(paths)
        self._tops = {path.parts[0] for path in self._paths if path.parts}
        self._by_name: dict[str, list[PurePosixPath]] = {}
        for path in sorted(self._paths):
            self._by_name.setdefault(path.name, []).append(path.parent)

    def first_with(self, folders: Iterable[PurePosixPath], name: str) -> PurePosixPath | None:
        """Return the first folder with a file of this name."""
        return next((folder for folder in folders if folder / name in self._paths), None)

    def anywhere(self, name: str) -> list[PurePosixPath]:
        """Return all folders with a file of this name."""
        return self._by_name.get(name, [])

    def is_sibling(self, folder: PurePosixPath) -> bool:
        """Return whether a folder may belong to another package installed beside this one."""
        top = folder.parts[0] if folder.parts else ""
        return folder in _ENVIRONMENT or top not in {"", _UP, *self._tops}


def resolving_rpath(
    file: PurePosixPath, elf: Elf, installed: InstalledFiles, policy: Policy
) -> str:
    """Return the policy's rpath of a file, with the folders in which it now finds its libraries.

    The folder of a needed library comes first if the policy's directories have another file of that
    name, and last if they have none. A file outside of the install root, such as a script, keeps
    its rpath, as its path to the package is unknown.
    """
    if file.parts[0] == _UP:
        return elf.runpath or elf.rpath
    wanted = policy.rpath(file)
    then = list(entry_folders(file, wanted))
    now = list(entry_folders(file, elf.runpath or elf.rpath))
    first, last = list[PurePosixPath](), list[PurePosixPath]()
    for name in elf.needed:
        old, new = installed.first_with(now, name), installed.first_with(then, name)
        if old is not None and new is not None and old != new:
            first.append(old)
        elif old is not None and new is None:
            last.append(old)
        elif old is None and new is None and not policy.is_outside(name):
            last += _elsewhere(name, now, installed)
    before, after = (
        [from_origin(folder, file.parent) for folder in group] for group in (first, last)
    )
    return ":".join(dict.fromkeys((*before, *wanted.split(":"), *after)))


def _elsewhere(
    name: str, searched: Iterable[PurePosixPath], installed: InstalledFiles
) -> Iterable[PurePosixPath]:
    """Return possible folders of a library that the file itself does not find in the package.

    It is found by the RPATH of a file that loads this one, or by an absolute entry where it was
    built; or it is in another package whose folders are in the rpath.
    """
    return installed.anywhere(name)[:1] or [f for f in searched if installed.is_sibling(f)]


def entry_folders(file: PurePosixPath, directories: str) -> Iterator[PurePosixPath]:
    """Yield the folders of an rpath that are relative to the file, as installed paths."""
    for entry in directories.split(":"):
        if match := _ORIGIN.match(entry):
            yield PurePosixPath(posixpath.normpath(f"{file.parent}/{entry[match.end() :]}"))
