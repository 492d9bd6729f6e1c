"""The files of a finished build: in its directory, or of a job in the store."""

import posixpath
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from torchyard.errors import HostError, SelectionError
from torchyard.workspace.left_job import left_job
from torchyard.workspace.locations import open_store, work_directory

if TYPE_CHECKING:
    from torchyard.model.result import Result
    from torchyard.package.contents import Contents
    from torchyard.store.store import Store

_REPLIES = ".cmake/api/v1/reply/"


class BuildFiles(NamedTuple):
    """A build directory; a job's has only files of ninja and CMake, others are fetched into it."""

    folder: Path
    size: Callable[[str], int]
    fetch: Callable[[Iterable[str]], object]


def named_build(what: str | None, file: str) -> str:
    """Return `what`, or the build directory of the running or failed job that it names."""
    if what is not None and Path(what).exists():
        return what
    from torchyard.insight.build_record import LOG
    from torchyard.recipes import steps_of
    from torchyard.run.workdir import WorkDir

    if left := left_job(what, file):
        workdir = WorkDir(Path(work_directory(file)), left)
        for log in sorted(workdir.build.rglob(LOG), key=_changed_at, reverse=True):
            return str(log.parent)
        if len(workdir.state().steps) < len(steps_of(left)):
            msg = f"ninja has finished nothing of {left.task.id} so far"
            raise SelectionError(msg, hint=f"torchyard status {left.task.id} says what it does")
    return what or (left.task.id if left else "core:*")


def _changed_at(path: Path) -> float:
    return path.stat().st_mtime


@contextmanager
def open_build(what: str, file: str, store: str | None) -> Iterator[BuildFiles]:
    """Open a build directory, or the one of a job's newest result."""
    from torchyard.insight.build_links import file_size

    if Path(what).is_dir():
        yield BuildFiles(Path(what), file_size(Path(what)), lambda _paths: None)
        return
    opened = open_store_of(what, file, store)
    with TemporaryDirectory(prefix="torchyard-build-") as scratch:
        yield _laid_out(named_result(what, opened), opened, Path(scratch))


def open_store_of(what: str, file: str, store: str | None) -> "Store":
    """Open the store of a job; an error may mean that `what` is a wrong path."""
    try:
        return open_store(store, file, make=False)
    except (HostError, SelectionError) as error:
        if ":" in what:
            raise
        msg = f"there is no file or directory `{what}`, and no job of that name: {error}"
        raise SelectionError(msg, hint=error.diagnostics[0].hint) from error


def _laid_out(result: "Result", store: "Store", scratch: Path) -> BuildFiles:
    from torchyard.insight.build_record import BUILD_FILE, LOG
    from torchyard.model.result import Tree
    from torchyard.model.unit_usage import UNITS_FILE
    from torchyard.store.trees import fetch_tree

    logs = [file.path for file in result.tree.files if file.path.endswith(f"/{LOG}")]
    if not logs:
        msg = f"the result of {result.id} has no log of ninja"
        hint = "the recipe `pytorch` keeps one in cores; for another build, name its directory"
        raise SelectionError(msg, hint=hint)
    build = logs[0].removesuffix(LOG)
    files = {file.path: file for file in result.tree.files}

    def path_of(path: str) -> str:
        return posixpath.normpath(build + path)

    def fetch(paths: Iterable[str]) -> None:
        wanted = dict.fromkeys(map(path_of, paths))
        fetch_tree(store, Tree(files=tuple(files[p] for p in wanted if p in files)), scratch)

    def size(path: str) -> int:
        found = files.get(path_of(path))
        return found.size if found else 0

    replies = [path for path in files if path.startswith(build + _REPLIES)]
    fetch([BUILD_FILE, LOG, UNITS_FILE, *(path.removeprefix(build) for path in replies)])
    return BuildFiles(scratch / build, size, fetch)


def open_package(what: str, file: str, store: str | None) -> "Contents | None":
    """Read a package file, or the package that a job made; return None if there is neither."""
    if Path(what).is_dir():
        return None
    from torchyard.package.delivered import is_package_name
    from torchyard.package.read import read_package
    from torchyard.store.trees import fetch_file

    if Path(what).is_file():
        return _whole(read_package(Path(what)))
    opened = open_store_of(what, file, store)
    result = named_result(what, opened)
    for stored in result.tree.files:
        if "/" not in stored.path and is_package_name(stored.path):
            with TemporaryDirectory(prefix="torchyard-package-") as scratch:
                fetch_file(opened, stored, Path(scratch, stored.path))
                return read_package(Path(scratch, stored.path))
    return None


def _whole(contents: "Contents") -> "Contents":
    """Return a package, or refuse one of which nothing could be read."""
    if not contents.files and contents.faults:
        msg = f"`{contents.file_name}` can't be read as a package: {contents.faults[0].what}"
        raise SelectionError(msg, hint="name a wheel, a conda package or a libtorch zip")
    return contents


def named_result(what: str, store: "Store") -> "Result":
    """Return the newest result of the job with this name."""
    from torchyard.model.recipe import Stage
    from torchyard.store.select import select_results

    found = sorted(select_results(store, what.split()), key=lambda result: result.started)
    if not found:
        msg = f"the store has no result of `{what}`, and there is no such file or directory"
        raise SelectionError(msg, hint="`torchyard store ls` lists the results")
    if ":" not in what:  # a cell stands for its package
        found = [result for result in found if result.spec.task.stage is Stage.PACKAGE] or found
    jobs = list(dict.fromkeys(result.id for result in found))
    if len(jobs) > 1:
        msg = f"`{what}` names {len(jobs)} jobs: {', '.join(jobs[:3])}"
        raise SelectionError(msg, hint="name one of them")
    return found[-1]
