"""Copying results from one store to another, blobs before manifests."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from torchyard.model.result import Part, Result
from torchyard.store.gc_lease import GcWatch
from torchyard.store.keys import blob_key
from torchyard.store.objects import Identity
from torchyard.store.same_reads import remember_reads
from torchyard.store.store import THREADS, Store
from torchyard.store.trees import fetch_blob


class Copied(NamedTuple):
    """How many results were copied or present already, and the bytes that were sent."""

    results: int
    there: int
    sent: int


def copy(source: Store, target: Store, results: Iterable[Result]) -> Copied:
    """Copy results that the target lacks; write blobs before their manifest."""
    copied = there = sent = 0
    for result in results:
        if target.has(result.fingerprint):
            there += 1
        else:
            sent += _copy_one(source, target, result, target.publish)
            remember_reads(target.objects, result)
            copied += 1
    return Copied(copied, there, sent)


def copy_unfinished(source: Store, target: Store, results: Iterable[Result]) -> Copied:
    """Copy the unfinished work of jobs whose result the target lacks."""
    sizes = [
        _copy_one(source, target, result, target.keep_unfinished)
        for result in results
        if not target.has(result.fingerprint)
    ]
    return Copied(len(sizes), 0, sum(sizes))


def _copy_one(
    source: Store, target: Store, result: Result, finish: Callable[[Result], object]
) -> int:
    """Copy the blobs of a result, then let `finish` write its manifest."""
    watch = GcWatch(target.objects)

    def send(blob: tuple[str, int]) -> int:
        digest, size = blob
        if target.objects.holds(blob_key(digest), Identity(size, digest)):
            return 0
        with TemporaryFile() as file:  # without a name: the kernel removes it even if we are killed
            fetch_blob(source, Part(digest=digest, size=size), file, result.id)
            file.flush()
            target.objects.write(blob_key(digest), Path(f"/proc/self/fd/{file.fileno()}"))
        return size

    def heal() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            sizes.extend(pool.map(send, result.blobs().items()))
        finish(result)

    sizes: list[int] = []
    heal()
    watch.settle(heal)
    return sum(sizes)
