"""A core's build tree in a bindings job: restored, and configured again with its old times."""

import filecmp
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchyard.model.result import File
from torchyard.toolchain.ninja import is_compiled

_CMAKE = frozenset(("CMakeFiles", ".cmake"))
_CMAKE_FILES = frozenset(("CMakeCache.txt", "build.ninja", "cmake_install.cmake"))
"""Files that CMake itself writes; with an old time, it would configure again at each build."""


def restore_tree(tree: Path, to: Path) -> None:
    """Copy a build tree with its times.

    Files from compilers and linkers are shared with the input, and write-protected: they are
    most of the bytes, and no tool may change them. Other files are copies, as tools may write to
    them in place.
    """
    folders = [tree]
    to.mkdir(parents=True, exist_ok=True)
    for source, is_folder in _entries(tree):
        target = to / source.relative_to(tree)
        if is_folder:
            target.mkdir(exist_ok=True)
            folders.append(source)
        elif is_compiled(source.name) and not source.is_symlink():
            source.chmod(stat.S_IMODE(source.stat().st_mode) & ~0o222)
            os.link(source, target)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
    for folder in folders:  # their times change while they are filled
        shutil.copystat(folder, to / folder.relative_to(tree))


def keep_times(tree: Path, configured: Path) -> list[Path]:
    """Restore the times of files rewritten with the same content; return these files.

    Projects rewrite files whenever they are configured, which would compile everything from them
    again.
    """
    kept = []
    for path, is_folder in _entries(configured):
        before = tree / path.relative_to(configured)
        if is_folder or path.is_symlink() or _is_of_cmake(path) or not before.is_file():
            continue
        old, new = before.stat(), path.stat()
        if old.st_mtime_ns != new.st_mtime_ns and filecmp.cmp(before, path, shallow=False):
            os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
            kept.append(path)
    return kept


def keep_recorded_times(files: Iterable[File], folder: Path) -> None:
    """Give files with the same content as in a result their times from there.

    As above, but leave the files that CMake itself writes.
    """
    for file in files:
        path = folder / file.path
        if _is_of_cmake(path) or path.is_symlink() or not path.is_file():
            continue
        status = path.stat()
        if status.st_size == file.size and status.st_mtime_ns != file.mtime:
            with path.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            if digest == file.digest:
                os.utime(path, ns=(status.st_atime_ns, file.mtime))


def _is_of_cmake(path: Path) -> bool:
    return path.name in _CMAKE_FILES or not _CMAKE.isdisjoint(path.parts)


def _entries(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield everything below a directory, and whether it is a directory, not a link."""
    with os.scandir(folder) as entries:
        for entry in entries:
            path, is_folder = Path(entry), entry.is_dir(follow_symlinks=False)
            yield path, is_folder
            if is_folder:
                yield from _entries(path)
