"""Build a package again from the job spec that it contains, and compare the two."""

import zipfile
from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

import msgspec

from torchyard.checks.expected import order_text
from torchyard.errors import StoreError
from torchyard.model.event import Listener, Noted
from torchyard.model.job_spec import ORDER, JobSpec
from torchyard.model.result import File, Result
from torchyard.package.read import read_package
from torchyard.run.job import Conditions, run_job
from torchyard.store.keys import result_key
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.trees import fetch_file

_LISTED = 20
"""How many differences are listed before the rest is only counted."""


class RebuiltPackage(NamedTuple):
    """A package that was built again, and how it differs from the first one."""

    made: Path
    digest: str
    differences: tuple[str, ...]


def carried_order(package: Path) -> JobSpec:
    """Return the order that a package of any format carries."""
    contents = read_package(package)
    text = order_text(contents)
    hint = "packages that torchyard makes carry it; steps of your own can copy {order} into theirs"
    if text is not None:
        try:
            return msgspec.json.decode(text, type=JobSpec)
        except msgspec.DecodeError as error:
            msg = f"the order that `{package}` carries can't be read: {error}"
            raise StoreError(msg, hint=hint) from error
    for _, member, what in contents.faults:
        msg = f"`{package}` can't be read as a package: {member or 'it'} {what}"
        raise StoreError(msg, hint="`torchyard check` lists all that is wrong with it")
    msg = f"`{package}` does not say how it was made: there is no {ORDER} in it"
    raise StoreError(msg, hint=hint)


def rebuild(
    package: Path, order: JobSpec, scratch: Store, conditions: Conditions, on_event: Listener
) -> RebuiltPackage:
    """Run every job that a package was made by, unless the scratch store has its result."""
    for task in order.tasks[:-1]:
        run_job(order.of(task), scratch, conditions, on_event)
    scratch.objects.delete([result_key(order.task.fingerprint)])  # of an earlier comparison
    result = run_job(order, scratch, conditions, on_event).result
    made = _counterpart(result, package)
    if made is None:
        msg = f"what was made again has no file `{package.name}`"
        raise StoreError(msg, hint=f"`torchyard store show {order.task.id}` lists what there is")
    path = conditions.work / "rebuilt" / package.name
    path.parent.mkdir(parents=True, exist_ok=True)
    fetch_file(scratch, made, path)
    with package.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    same = digest == made.digest
    return RebuiltPackage(path, made.digest, () if same else tuple(_differences(package, path)))


def borrow(order: JobSpec, store: Store, scratch: Store, on_event: Listener) -> None:
    """Copy the inputs of a package, but never the package itself, from a store."""
    for task in order.tasks[:-1]:
        result = store.find(task.fingerprint)
        if result is not None:
            copy(store, scratch, [result])
            on_event(Noted(job=task.id, text="is taken from the store as it is"))


def _counterpart(result: Result, package: Path) -> File | None:
    files = [file for file in result.tree.files if Path(file.path).name == package.name]
    return files[0] if files else None


def _differences(old: Path, new: Path) -> Iterator[str]:
    """Yield which members of two archives differ; if none does, the archives' metadata does."""
    with zipfile.ZipFile(old) as first, zipfile.ZipFile(new) as second:
        before = {info.filename: (info.CRC, info.file_size) for info in first.infolist()}
        after = {info.filename: (info.CRC, info.file_size) for info in second.infolist()}
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
