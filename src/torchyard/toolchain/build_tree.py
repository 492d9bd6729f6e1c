"""A core's build tree in a bindings job: restored, and configured again without looking newer."""

import filecmp
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from torchyard.toolchain.ninja import is_compiled

_CMAKE = frozenset(("CMakeFiles", ".cmake"))
_CMAKE_FILES = frozenset(("CMakeCache.txt", "build.ninja", "cmake_install.cmake"))
"""What CMake itself writes; with an old time, it would configure again at each build."""


def restore_tree(tree: Path, to: Path) -> None:
    """Copy a build tree with its times.

    Files that compilers and linkers made are shared with the input, and write-protected: they are
    most of the bytes, and no tool may change them. All others are copies, as tools may write to
    them in place.
    """
    folders = [tree, *(path for path in sorted(tree.rglob("*")) if _is_folder(path))]
    for folder in folders:
        (to / folder.relative_to(tree)).mkdir(parents=True, exist_ok=True)
    for source in _files(tree):
        target = to / source.relative_to(tree)
        status = source.lstat()
        if stat.S_ISREG(status.st_mode) and is_compiled(source.name):
            source.chmod(stat.S_IMODE(status.st_mode) & ~0o222)
            os.link(source, target)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
    for folder in folders:
        shutil.copystat(folder, to / folder.relative_to(tree))


def keep_times(tree: Path, configured: Path) -> list[Path]:
    """Give files that were written again with the same content the times they had; return them.

    Projects write files whenever they are configured; what is compiled from them would be compiled
    again.
    """
    kept = []
    for path in _files(configured):
        before = tree / path.relative_to(configured)
        if path.is_symlink() or _is_of_cmake(path) or not before.is_file():
            continue
        old, new = before.stat(), path.stat()
        if old.st_mtime_ns != new.st_mtime_ns and filecmp.cmp(before, path, shallow=False):
            os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
            kept.append(path)
    return kept


def _is_of_cmake(path: Path) -> bool:
    return path.name in _CMAKE_FILES or not _CMAKE.isdisjoint(path.parts)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _files(folder: Path) -> Iterator[Path]:
    """Yield all files and links below a directory; links to directories are links."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry))
            else:
                yield Path(entry)
