"""What the last build of a working directory leaves to the next one, after an edit.

For each cell, there are its Python environment, compiled Python modules, and the objects that ninja
made, with the digest and time of each file of the source. If a job's files have the same names, it
begins with the objects: files that did not change get the times they had, others the present one,
so ninja compiles what was edited, or includes what was.
"""

import os
import shutil
import time
from contextlib import suppress
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
from torchyard.run.conditions import Conditions
from torchyard.run.workdir import BUILD, EQUIPMENT, INPUTS, WorkDir
from torchyard.store.store import Store
from torchyard.toolchain.ninja import is_unit

_OBJECTS, _MODULES, _TIMES = "objects", "modules", "times.json"
_SOURCE = f"{INPUTS}/{Stage.SOURCE}"
_LOG, _DEPS = ".ninja_log", ".ninja_deps"

_Times = dict[str, tuple[str, int]]
"""Digest and time of each file of a source, by its path."""


class KeptBuild(NamedTuple):
    """The directory for a job's cell and settings; `digests` are those of the source's files."""

    folder: Path
    place: WorkDir
    digests: dict[str, str]

    @classmethod
    def of(cls, place: WorkDir, store: Store, conditions: Conditions) -> "KeptBuild | None":
        """Return it for a job that compiles the caller's own extension from a directory."""
        task, recipe = place.order.task, find_recipe(place.order.task.recipe)
        folders = [one for one in place.order.tasks if one.source and one.source.path is not None]
        if not (recipe and recipe.is_extension and task.stage is Stage.BINDINGS and folders):
            return None
        if conditions.foreign or conditions.demanded:  # others could write what is reused
            return None
        settings = msgspec.structs.replace(task.payload, inputs=[])
        name = short_name("kept", fingerprint([conditions.file, store.url, settings]))
        source = store.get(folders[0].fingerprint, folders[0].id).tree
        return cls(conditions.work / name, place, {file.path: file.digest for file in source.files})

    def restore(self) -> bool:
        """Give what is kept to a job that has not begun; return whether objects are part of it.

        If a file was added they are not: it can be a header that is found before another one.
        """
        known: _Times = {}
        with suppress(OSError, msgspec.DecodeError):
            known = msgspec.json.decode((self.folder / _TIMES).read_bytes(), type=_Times)
        with suppress(OSError):
            for name in EQUIPMENT:
                (self.folder / name).rename(self.place.folder / name)
        now = time.time_ns()
        with UntrustedTree(self.place.job) as tree:
            with suppress(HostError):
                tree.move_in(self.folder / _MODULES, _MODULES)
            with suppress(HostError):
                if known.keys() == self.digests.keys():
                    tree.move_in(self.folder / _OBJECTS, _OBJECTS)
                    for path, digest in self.digests.items():
                        then = known[path][1] if known[path][0] == digest else now
                        with tree.open_file(f"{_SOURCE}/{path}") as file:
                            os.utime(file.fileno(), ns=(then, then))
                    return True
        return False

    def keep(self) -> None:
        """Keep the objects of which ninja knows what they include, also if another one failed."""
        part = self.folder.with_name(f"{self.folder.name}.part")
        remove_folder(part)
        with suppress(HostError), UntrustedTree(self.place.job) as tree:
            found = {entry.path: entry.status.st_mtime_ns for entry in tree.walk(partly=True)}
            noted = tuple(path.removesuffix(_DEPS) for path in found if path.endswith(f"/{_DEPS}"))
            for path in (path for path in found if path.startswith(noted)):
                name = path.removeprefix(f"{BUILD}/")
                if path.endswith((_LOG, _DEPS)) or (is_unit(name) and name not in self.digests):
                    copy = part / _OBJECTS / name
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    with tree.open_file(path) as file, copy.open("wb") as out:
                        shutil.copyfileobj(file, out)
                    os.utime(copy, ns=(0, found[path]))
            if noted:
                times = {path: (d, found[f"{_SOURCE}/{path}"]) for path, d in self.digests.items()}
                (part / _TIMES).write_bytes(msgspec.json.encode(times))
                remove_folder(self.folder)
                part.rename(self.folder)
                tree.move_out(_MODULES, self.folder / _MODULES, EntryKind.FOLDER)

    def take_equipment(self) -> None:
        """Keep the environment of a job that is finished, and whose directory is to be removed."""
        for name in EQUIPMENT if self.folder.exists() else ():
            (self.place.folder / name).rename(self.folder / name)
