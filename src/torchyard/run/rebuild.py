"""Rebuild a package from the job spec in it, and compare the two."""

import gzip
import zipfile
from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from uuid import uuid4

from torchyard.errors import StoreError
from torchyard.model.event import Listener, Noted
from torchyard.model.job_spec import JobSpec
from torchyard.model.result import File, Result
from torchyard.recipes import runs_only_ours
from torchyard.run.conditions import Conditions
from torchyard.run.job import run_job
from torchyard.run.source import take_snapshot
from torchyard.store.keys import result_key
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.trees import Writer, fetch_file
from torchyard.version import __version__

_LISTED = 20
"""The most differences to list; others are counted."""


class RebuiltPackage(NamedTuple):
    """A rebuilt package, and its differences from the original."""

    made: Path
    digest: str
    differences: tuple[str, ...]


def rebuild(
    package: Path, spec: JobSpec, scratch: Store, conditions: Conditions, on_event: Listener
) -> RebuiltPackage:
    """Run every job that made a package, unless the scratch store has its result.

    A source of this machine is copied to the store: steps can't see it from their sandbox.
    """
    for task in spec.tasks[:-1]:
        if task.source is not None and task.source.file is not None:
            _copy_source(spec.of(task), scratch, conditions)
        run_job(spec.of(task), scratch, conditions, on_event)
    scratch.objects.delete([result_key(spec.task.fingerprint)])  # from an earlier comparison
    result = run_job(spec, scratch, conditions, on_event).result
    made = _counterpart(result, package)
    if made is None:
        msg = f"the rebuilt package has no file `{package.name}`"
        raise StoreError(msg, hint=f"`torchyard store show {spec.task.id}` lists its files")
    path = conditions.work / "rebuilt" / package.name
    path.parent.mkdir(parents=True, exist_ok=True)
    fetch_file(scratch, made, path)
    with package.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    same = digest == made.digest
    return RebuiltPackage(path, made.digest, () if same else tuple(_differences(package, path)))


def _copy_source(spec: JobSpec, scratch: Store, conditions: Conditions) -> None:
    """Store the source, which is beside the configuration, in the scratch store."""
    task = spec.task
    if scratch.has(task.fingerprint) or not runs_only_ours(task):
        return
    conditions.work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=conditions.work) as folder:
        log = Path(folder, "log.gz")
        log.write_bytes(gzip.compress(b"copied\n", mtime=0))
        out = Path(folder, "out")
        take_snapshot(task, conditions.file, out)
        writer = Writer(scratch)
        result = Result(
            fingerprint=task.fingerprint,
            spec=spec,
            tree=writer.add_tree(out),
            log=writer.add_file(log, log.name),
            torchyard=__version__,
            run=uuid4().hex,
        )
        writer.publish(result)


def borrow(spec: JobSpec, store: Store, scratch: Store, on_event: Listener) -> None:
    """Copy the inputs of a package, but not the package, from a store."""
    for task in spec.tasks[:-1]:
        result = store.find(task.fingerprint)
        if result is not None:
            copy(store, scratch, [result])
            on_event(Noted(job=task.id, text="is taken from the store unchanged"))


def _counterpart(result: Result, package: Path) -> File | None:
    files = [file for file in result.tree.files if Path(file.path).name == package.name]
    return files[0] if files else None


def _differences(old: Path, new: Path) -> Iterator[str]:
    """Yield the differences of two archives: members, or else the archives' metadata."""
    try:
        with zipfile.ZipFile(old) as first, zipfile.ZipFile(new) as second:
            before = {info.filename: (info.CRC, info.file_size) for info in first.infolist()}
            after = {info.filename: (info.CRC, info.file_size) for info in second.infolist()}
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        yield f"one of them can't be read as an archive: {error}"
        return
    found = [f"{name} is gone" for name in sorted(before.keys() - after.keys())]
    found += [f"{name} is new" for name in sorted(after.keys() - before.keys())]
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            found.append(f"{name} differs ({before[name][1]:,} and {after[name][1]:,} bytes)")
    yield from found[:_LISTED]
    if len(found) > _LISTED:
        yield f"and {len(found) - _LISTED:,} more"
    if not found:
        yield "all members are the same; order, times or compression of the archive are not"
