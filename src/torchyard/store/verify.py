"""Verify that all objects of a store match their digests."""

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import NamedTuple

from torchyard.errors import StoreError
from torchyard.model.result import Result
from torchyard.store.keys import BLOBS, RESULTS, blob_key, key_name, result_key
from torchyard.store.store import THREADS, Store


class Holding(NamedTuple):
    """A result, and the bytes of the files that only it has."""

    result: Result
    own: int


def holdings(results: Iterable[Result]) -> tuple[list[Holding], int]:
    """Return results sorted by identifier, and their total bytes."""
    found = sorted(results, key=lambda result: (result.id, result.started))
    users = Counter(digest for result in found for digest in result.blobs())
    sizes = {digest: size for result in found for digest, size in result.blobs().items()}
    held = [
        Holding(r, sum(f.size for f in r.tree.files if all(users[b.digest] == 1 for b in f.blobs)))
        for r in found
    ]
    return held, sum(sizes.values())


class Verification(NamedTuple):
    """The defects of a store. `broken` has the reason for each unusable result.

    `tags` are the ETags of the defective objects.
    """

    blobs: int
    bytes: int
    results: int
    damaged: tuple[str, ...]
    broken: dict[str, str]
    tags: dict[str, str]

    @property
    def is_clean(self) -> bool:
        return not (self.damaged or self.broken)


def verify(store: Store) -> Verification:
    """Read everything: compare blobs with their digests, and results with their blobs."""
    sizes: dict[str, int] = {}
    damaged: set[str] = set()
    tags: dict[str, str] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        metas = store.objects.list(BLOBS)
        for meta, digest in pool.map(lambda meta: (meta, _digest(store, meta.key)), metas):
            name = key_name(meta.key)
            if digest == name and meta.key == blob_key(name):
                sizes[name] = meta.size
            elif digest is not None:
                damaged.add(meta.key if digest == name else name)
                tags[meta.key] = meta.tag
    broken: dict[str, str] = {}
    count = 0
    for meta in store.objects.list(RESULTS):
        count += 1
        name = key_name(meta.key)
        try:
            if meta.key != result_key(name):
                name = meta.key
            result = store.find(name)
            why = result and _defect(store, result, sizes, damaged)
        except StoreError as error:
            why = str(error)
        if why:
            broken[name] = why
            tags[meta.key] = meta.tag
    return Verification(
        len(sizes), sum(sizes.values()), count, tuple(sorted(damaged)), broken, tags
    )


def remove_broken(store: Store, verdict: Verification) -> None:
    """Remove the defects, so that they are built again; manifests first.

    Objects that were replaced since stay.
    """
    results = [key for key in verdict.tags if key.startswith(RESULTS)]
    blobs = [key for key in verdict.tags if not key.startswith(RESULTS)]
    for keys in (results, blobs):
        for key in keys:
            meta = store.objects.head(key)
            if meta is not None and meta.tag == verdict.tags[key]:
                store.objects.delete([key])
        store.objects.sync()


def remove_result(store: Store, result: Result) -> None:
    """Remove an unusable result and its damaged blobs.

    If another process did so meanwhile, the newer result stays.
    """
    wrong = [
        digest
        for digest in result.blobs()
        if _digest(store, blob_key(digest)) not in (None, digest)
    ]
    if store.find(result.fingerprint) == result:
        store.objects.delete([result_key(result.fingerprint)])
        store.objects.sync()
        store.objects.delete(map(blob_key, wrong))


def _digest(store: Store, key: str) -> str | None:
    """Return the sha256 of a blob's bytes, or None if it has just been removed."""
    whole = sha256()
    try:
        for piece in store.objects.stream(key):
            whole.update(piece)
    except FileNotFoundError:
        return None
    return whole.hexdigest()


def _defect(store: Store, result: Result, sizes: dict[str, int], damaged: set[str]) -> str | None:
    """Return why a result is unusable, or None; it may have blobs newer than the listing."""
    for file in (*result.delivery.files, result.log):
        for part in file.blobs:
            if part.digest in damaged:
                return f"{result.id}: `{file.path}` is damaged"
            size = sizes.get(part.digest)
            if size is None and (meta := store.objects.head(blob_key(part.digest))):
                size = meta.size
            if size is None:
                return f"{result.id}: `{file.path}` is missing"
            if part.size != size:
                return f"{result.id}: the size of `{file.path}` is not the recorded one"
    return None
