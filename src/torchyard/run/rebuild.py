"""Making a package again from what it says about itself, and comparing the two."""

import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from torchyard.errors import HostError, StoreError
from torchyard.host.process import capture
from torchyard.model.event import Noted
from torchyard.model.order import Order
from torchyard.model.result import File, Result
from torchyard.run.job import Conditions, run_job
from torchyard.run.steps import Report
from torchyard.run.workplace import ORDER
from torchyard.store.keys import result_key
from torchyard.store.store import Store
from torchyard.store.transfer import copy
from torchyard.store.trees import fetch_file

_LISTED = 20
"""How many differences are told before they are only counted."""


class Comparison(NamedTuple):
    """The package as it was made again, and in what the two are not the same."""

    made: Path
    digest: str
    differences: tuple[str, ...]


def carried_order(package: Path) -> Order:
    """The order that a package carries: wheels, conda packages and libtorch zips are all zips.

    What a conda package says about itself is in an archive within the zip.
    """
    hint = "packages that torchyard makes carry it; steps of your own can copy {order} into theirs"
    try:
        with zipfile.ZipFile(package) as archive:
            order = _order_in(archive)
        if order is not None:
            return msgspec.json.decode(order, type=Order)
    except zipfile.BadZipFile as error:
        msg = f"`{package}` is no package that can carry its order: {error}"
        raise StoreError(msg, hint=hint) from error
    except msgspec.DecodeError as error:
        msg = f"the order that `{package}` carries can't be read: {error}"
        raise StoreError(msg, hint=hint) from error
    msg = f"`{package}` does not say how it was made: there is no {ORDER} in it"
    raise StoreError(msg, hint=hint)


def _order_in(archive: zipfile.ZipFile) -> bytes | None:
    for name in archive.namelist():
        if name.rpartition("/")[2] == ORDER:
            return archive.read(name)
        if fnmatchcase(name, "info-*.tar.zst"):
            return _order_in_info(archive.read(name))
    return None


def _order_in_info(packed: bytes) -> bytes | None:
    """Look into what a conda package says about itself; Python can't unpack it before 3.14.

    Nothing of it is written to the disk: anybody may have made the package.
    """
    with TemporaryDirectory(prefix="torchyard-") as scratch:
        folder = Path(scratch)
        (folder / "info.tar.zst").write_bytes(packed)
        tar = ["tar", "--zstd", "--file", "info.tar.zst"]
        name = f"info/{ORDER}"
        try:
            if name not in capture([*tar, "--list"], cwd=folder).splitlines():
                return None
            return capture([*tar, "--extract", "--to-stdout", name], cwd=folder).encode()
        except HostError as error:
            msg = f"what a conda package says about itself can't be unpacked: {error}"
            raise HostError(msg, hint="install tar and zstd") from error


def rebuild(
    package: Path, order: Order, scratch: Store, conditions: Conditions, report: Report
) -> Comparison:
    """Run every job that a package was made by; only what is in the scratch store is taken."""
    for task in order.tasks[:-1]:
        run_job(order.of(task), scratch, conditions, report)
    scratch.objects.delete([result_key(order.task.fingerprint)])  # of an earlier comparison
    result = run_job(order, scratch, conditions, report).result
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
    return Comparison(path, made.digest, () if same else tuple(_differences(package, path)))


def borrow(order: Order, store: Store, scratch: Store, report: Report) -> None:
    """Take from a store what a package was made from, but never the package itself."""
    for task in order.tasks[:-1]:
        result = store.find(task.fingerprint)
        if result is not None:
            copy(store, scratch, [result])
            report(Noted(job=task.id, text="is taken from the store as it is"))


def _counterpart(result: Result, package: Path) -> File | None:
    files = [file for file in result.tree.files if Path(file.path).name == package.name]
    return files[0] if files else None


def _differences(old: Path, new: Path) -> Iterator[str]:
    """Say which members of two archives are not the same; if all are, the archives' frames are."""
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
