"""Observe which files of its inputs a job reads, by access times.

They are 0 when the first step starts, and the kernel sets them at a read: `relatime` does so once,
which is enough. A step can't set one back unseen, as that changes the time of the inode's last
change, which no program can set. What ninja was told that it reads counts, too.

Nothing is observed on a disk where a read leaves no trace, such as one mounted with `noatime`.
"""

import mmap
import os
import posixpath
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from torchyard.config.recipes import find_recipe
from torchyard.errors import BuildError, HostError
from torchyard.host.untrusted_tree import EntryKind, UntrustedTree
from torchyard.insight.ninja_file import parse_ninja_file
from torchyard.model.job_spec import JobSpec
from torchyard.model.reads import COMMIT, InputFiles, reads_key, spec_name
from torchyard.model.recipe import Stage
from torchyard.model.result import Reads, Tree
from torchyard.model.step import Step
from torchyard.run.sandbox import INSIDE
from torchyard.run.workdir import BUILD, INPUTS, OUT, WorkDir
from torchyard.toolchain.ninja import parse_log, read_deps

_LOG, _DEPS, _FILE = ".ninja_log", ".ninja_deps", "build.ninja"
_LONGEST = 1 << 28

_Mark = tuple[int, int]
"""The inode of a file, and the time of its last change."""
_NO_MARK = (0, 0)


class ReadWatch:
    """Watches the steps of a job, whose inputs are trees by stage."""

    def __init__(self, workdir: WorkDir, trees: Mapping[str, Tree]) -> None:
        self._workdir = workdir
        self._inputs = InputFiles.of(workdir.spec, trees)
        self._paths = dict(_places(workdir.spec, self._inputs))
        self._marks: dict[str, _Mark] = {}
        self._read = {path for path, file in self._inputs.files.items() if not file.size}
        """Files that count as read; programs need not read an empty one to know its content."""

    def before(self, step: Step) -> None:
        """Note what was read before a step that only makes links to files."""
        if step.copies == "links":
            self._note()

    def after(self, step: Step) -> None:
        """Begin to watch after the step that copies the inputs, and go on after other copies."""
        if step.copies == "inputs":
            with UntrustedTree(self._workdir.job) as tree:
                for place, _ in self._found():
                    tree.forget_reads(place)
                    self._marks[place] = _NO_MARK
        if step.copies:
            found = ((place, status) for place, status in self._found() if place in self._marks)
            self._marks |= {
                place: _mark(status) for place, status in found if not status.st_atime_ns
            }
            newest = max((changed for _, changed in self._marks.values()), default=0)
            if not _reads_show(self._workdir.folder, newest):
                self._marks = {}

    def reads(self) -> Reads | None:
        """Return what the steps have read, or None if it could not be observed."""
        self._note()
        if not self._marks:
            return None
        try:
            told = {self._paths[place] for place in self._told() if place in self._paths}
        except (BuildError, HostError):  # no files of ninja's
            return None
        self._read |= told
        places = {self._marks[place][0]: path for place, path in self._unread()}
        with UntrustedTree(self._workdir.job, OUT) as out:
            carried = {
                entry.path: places[entry.status.st_ino]
                for entry in out.walk()
                if entry.kind is EntryKind.FILE and entry.status.st_ino in places
            }
        key = reads_key(spec_name(self._workdir.spec), self._inputs, self._read)
        if key is None:
            return None
        files = tuple(sorted(self._read))
        return Reads(key=key, files=files, total=len(self._inputs.files), carried=carried)

    def _note(self) -> None:
        """Count files as read that were, or that are not as they were left."""
        there = dict(self._found())
        for place, path in self._unread():
            status = there.get(place)
            if status is None or status.st_atime_ns or _mark(status) != self._marks[place]:
                self._read.add(path)

    def _unread(self) -> Iterator[tuple[str, str]]:
        """Yield places of files that do not count as read, each with its path."""
        for place in self._marks:
            if self._paths[place] not in self._read:
                yield place, self._paths[place]

    def _found(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the places where the job has a file of its inputs."""
        with UntrustedTree(self._workdir.job) as tree:
            for entry in tree.walk(partly=True):
                if entry.kind is EntryKind.FILE and entry.path in self._paths:
                    yield entry.path, entry.status

    def _told(self) -> Iterator[str]:
        """Yield the places of files that ninja knows as inputs of what it made."""
        with UntrustedTree(self._workdir.job) as tree:
            for entry in tree.walk(partly=True):
                folder, _, name = entry.path.rpartition("/")
                if name != _LOG or entry.kind is not EntryKind.FILE:
                    continue
                data = {name: _content(tree, f"{folder}/{name}") for name in (_LOG, _DEPS, _FILE)}
                made = {row.output for row in parse_log(data[_LOG])}
                told = [path for paths in read_deps(data[_DEPS]).values() for path in paths]
                for edge in parse_ninja_file(data[_FILE]):
                    told += edge.inputs if made.intersection(edge.outputs) else ()
                for path in told:
                    full = posixpath.normpath(posixpath.join(INSIDE, folder, path))
                    yield full.removeprefix(f"{INSIDE}/")


def _content(tree: UntrustedTree, path: str) -> bytes:
    """Return the content of a file; empty if there is none."""
    if tree.find(path) is None:
        return b""
    with tree.open_file(path) as file:
        return file.read(_LONGEST)


def _places(spec: JobSpec, inputs: InputFiles) -> Iterator[tuple[str, str]]:
    """Yield where a job has each file of its inputs: as it was given, and laid out for the build.

    The build begins with the core's tree if there is one, else with the source.
    """
    recipe = find_recipe(spec.task.recipe)
    has_core = any(path.startswith(f"{Stage.CORE}/") for path in inputs.files)
    laid_out = f"{Stage.SOURCE}/"
    if has_core and recipe and recipe.build_tree:
        laid_out = f"{Stage.CORE}/{recipe.build_tree}/"
    elif spec.commit:
        yield f"{BUILD}/.git/HEAD", COMMIT
    for path in inputs.files:
        yield f"{INPUTS}/{path}", path
        if path.startswith(laid_out):
            yield f"{BUILD}/{path.removeprefix(laid_out)}", path


def _mark(status: os.stat_result) -> _Mark:
    return status.st_ino, status.st_ctime_ns


def _reads_show(folder: Path, newest: int) -> bool:
    """Return whether reads of a file show there; wait until a change has a time after `newest`."""
    with TemporaryDirectory(dir=folder) as own:
        probe = Path(own, "probe")
        while not probe.exists() or probe.stat().st_ctime_ns <= newest:
            probe.write_bytes(b"0")
        with probe.open("rb", buffering=0) as file:
            ways = (file.read, lambda: mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ).close())
            return all(_shows(probe, way) for way in ways)


def _shows(probe: Path, way: Callable[[], object]) -> bool:
    os.utime(probe, ns=(0, 0))
    way()
    return probe.stat().st_atime_ns > 0
