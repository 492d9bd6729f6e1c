"""The parts of a working directory's last build that speed up the next one, after an edit.

For each cell and kind of sandbox, these are its Python environment, compiled Python modules, and
ninja's objects, with the digest and time of each source file. If a job's source has the same files,
links and build script, it starts with the objects: unchanged files get their old times, others a
later one, so ninja compiles edited files and those that include them.

Objects are only kept if ninja knows their includes, and all of these are unchanged source files or
outside of the job: times of files that a build copies or unpacks mean nothing.
"""

import os
import posixpath
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.config.recipes import find_recipe
from torchyard.errors import HostError
from torchyard.host.locks import remove_folder
from torchyard.host.untrusted_tree import EntryKind, UntrustedTree
from torchyard.model.canonical import fingerprint
from torchyard.model.job_spec import short_name
from torchyard.model.recipe import Stage
from torchyard.model.values import Value
from torchyard.run.conditions import Conditions
from torchyard.run.sandbox import work_path
from torchyard.run.workdir import BUILD, EQUIPMENT, INPUTS, WorkDir
from torchyard.store.store import Store
from torchyard.toolchain.ninja import is_unit, read_deps

_OBJECTS, _MODULES, _RECORD = "objects", "modules", "record.json"
_SOURCE = f"{INPUTS}/{Stage.SOURCE}"
_LOG, _DEPS = ".ninja_log", ".ninja_deps"
_LONGEST = 1 << 28
_SCRIPTS = ("setup.py", "setup.cfg", "pyproject.toml")
"""Files that may change compilers' behaviour by variables instead of commands."""


class _Record(Value, kw_only=True):
    """The inputs of kept objects.

    `basis` is a digest of the source's names, links and scripts. `times` holds the digest and time
    of each file, `outside` the time of the last change of each file outside of the job. `newest` is
    the time of the newest object.
    """

    basis: str
    times: dict[str, tuple[str, int]]
    outside: dict[str, int]
    newest: int


class KeptBuild(NamedTuple):
    """The kept build for a job's cell and settings; `digests` are of the source's files."""

    workdir: WorkDir
    work: Path
    settings: str
    basis: str
    digests: dict[str, str]

    @classmethod
    def of(cls, workdir: WorkDir, store: Store, conditions: Conditions) -> "KeptBuild | None":
        """Return the kept build of a job that compiles the caller's extension in a directory."""
        task, recipe = workdir.spec.task, find_recipe(workdir.spec.task.recipe)
        folders = [job for job in workdir.spec.tasks if job.source and job.source.path is not None]
        if not (recipe and recipe.is_extension and task.stage is Stage.BINDINGS and folders):
            return None
        if conditions.foreign or conditions.demanded:  # others could write the reused files
            return None
        settings = msgspec.structs.replace(task.payload, inputs=[])
        source = store.get(folders[0].fingerprint, folders[0].id).tree
        digests = {file.path: file.digest for file in source.files}
        scripts = {path: digests.get(path) for path in _SCRIPTS}
        name = fingerprint([conditions.file, store.url, settings])
        basis = fingerprint([sorted(digests), source.links, scripts])
        return cls(workdir, conditions.work, name, basis, digests)

    @property
    def folder(self) -> Path:
        """The directory, which depends on the sandbox."""
        named = fingerprint([self.settings, self.workdir.state().sandbox])
        return self.work / short_name("kept", named)

    def restore(self) -> bool:
        """Give the kept files to a job that has not started; return whether they include objects.

        They do not if a file was added: it may be a header that is found before another one.
        """
        own = self.workdir.folder / "last"
        remove_folder(own)
        try:
            self.folder.rename(own)  # at once: another build may replace it
            record = msgspec.json.decode((own / _RECORD).read_bytes(), type=_Record)
        except (OSError, msgspec.DecodeError):
            return False
        self.workdir.save(msgspec.structs.replace(self.workdir.state(), is_continued=True))
        with suppress(OSError):
            for name in EQUIPMENT:
                (own / name).rename(self.workdir.folder / name)
        later = max(time.time_ns(), record.newest + 1)  # the clock may have been ahead
        with UntrustedTree(self.workdir.job) as tree:
            with suppress(HostError):
                tree.move_in(own / _MODULES, _MODULES)
            with suppress(HostError):
                if record.basis == self.basis and record.outside == _changes(record.outside):
                    tree.move_in(own / _OBJECTS, _OBJECTS)
                    for path, digest in self.digests.items():
                        known, then = record.times[path]
                        with tree.open_file(f"{_SOURCE}/{path}") as file:
                            os.utime(file.fileno(), ns=(0, then if known == digest else later))
                    return True
        return False

    def keep(self) -> None:
        """Keep the objects with known includes, even if others failed."""
        part = self.workdir.folder / "next"
        remove_folder(part)
        with suppress(HostError), UntrustedTree(self.workdir.job) as tree:
            made = _Made(tree, work_path(self.workdir.state().sandbox, self.workdir), self.digests)
            newest = 0
            for path, entry in made.found.items():
                if path.endswith((f"/{_LOG}", f"/{_DEPS}")) or made.is_reusable(path):
                    copy = part / _OBJECTS / path.removeprefix(f"{BUILD}/")
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    with tree.open_file(path) as file, copy.open("wb") as out:
                        shutil.copyfileobj(file, out)
                    newest = max(newest, entry.st_mtime_ns)
                    os.utime(copy, ns=(0, entry.st_mtime_ns))
            if made.includes:
                record = _Record(
                    basis=self.basis,
                    times={
                        path: (digest, made.found[f"{_SOURCE}/{path}"].st_mtime_ns)
                        for path, digest in self.digests.items()
                    },
                    outside=_changes(made.outside),
                    newest=newest,
                )
                (part / _RECORD).write_bytes(msgspec.json.encode(record))
                with suppress(HostError):
                    tree.move_out(_MODULES, part / _MODULES, EntryKind.FOLDER)
                with suppress(OSError):  # another build was faster
                    remove_folder(self.folder)
                    part.rename(self.folder)

    def take_equipment(self) -> None:
        """Keep the environment of a finished job whose directory will be removed."""
        with suppress(OSError):
            for name in EQUIPMENT:
                (self.workdir.folder / name).rename(self.folder / name)


class _Made:
    """The regular files left by a job's steps, and their includes according to ninja."""

    def __init__(self, tree: UntrustedTree, seen_as: str, digests: dict[str, str]) -> None:
        self.found = {
            entry.path: entry.status
            for entry in tree.walk(partly=True)
            if entry.kind is EntryKind.FILE
        }
        self.includes: dict[str, list[str]] = {}
        self.outside: set[str] = set()
        self._tree, self._top, self._digests = tree, f"{seen_as}/", digests
        self._known: dict[str, bool] = {}
        for path in (path for path in self.found if path.endswith(f"/{_DEPS}")):
            folder = posixpath.dirname(self._top + path)
            with tree.open_file(path) as file:
                for name, names in read_deps(file.read(_LONGEST)).items():
                    output = posixpath.normpath(posixpath.join(folder, name))
                    self.includes[output] = [
                        posixpath.normpath(posixpath.join(folder, included)) for included in names
                    ]

    def is_reusable(self, path: str) -> bool:
        """Return whether an object only includes given files."""
        if not is_unit(path) or path.removeprefix(f"{BUILD}/") in self._digests:
            return False
        includes = self.includes.get(self._top + path, [])
        return bool(includes) and all(map(self._is_given, includes))

    def _is_given(self, path: str) -> bool:
        """Return whether a file is an unchanged source file, or not made by any step."""
        if path not in self._known:
            inside = path.removeprefix(self._top)
            if inside == path:
                self.outside.add(path)
            self._known[path] = inside == path or self._is_as_given(inside)
        return self._known[path]

    def _is_as_given(self, path: str) -> bool:
        if path.startswith(tuple(f"{name}/" for name in EQUIPMENT)):
            return True
        digest = self._digests.get(path.removeprefix(f"{BUILD}/").removeprefix(f"{_SOURCE}/"))
        if digest is None or path not in self.found:
            return False
        with self._tree.open_file(path) as file:
            return sha256(file.read()).hexdigest() == digest


def _changes(paths: Iterable[str]) -> dict[str, int]:
    """Return the inode change time of each file, which no program can set; 0 if gone."""
    found = {}
    for path in paths:
        found[path] = 0
        with suppress(OSError, ValueError):
            found[path] = Path(path).stat().st_ctime_ns
    return found
