"""Garbage collection.

A manifest that this process can't use stays, with everything that it may name: other readers may
trust its maker, or have a newer torchyard.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from torchyard.model.recipe import Stage
from torchyard.model.values import UNDECODABLE
from torchyard.store import claims
from torchyard.store.gc_lease import GcLease
from torchyard.store.keys import (
    BLOBS,
    CLAIMS,
    READS,
    RESULTS,
    UNFINISHED,
    UNITS,
    claim_key,
    key_name,
    result_key,
    unfinished_key,
)
from torchyard.store.objects import ObjectMeta
from torchyard.store.pins import pinned_fingerprints
from torchyard.store.same_reads import record_key
from torchyard.store.store import Store, Unusable
from torchyard.store.unit_memory import units_key_of

_ABANDONED = timedelta(days=1)
"""Seconds without a heartbeat after which a claim is probably abandoned."""

_NAME = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

T = TypeVar("T")


class Garbage(NamedTuple):
    """What a collection removes: results by fingerprint, blobs and unfinished files."""

    results: dict[str, str]
    blobs: dict[str, int]
    leftovers: dict[Path, int]
    kept: int
    unusable: Unusable
    """Unusable manifests, which stay."""
    is_blind: bool
    """Whether one of these hides what it names. Then no result and no blob is removed."""
    records: list[str]
    """The keys of records of units and reads whose jobs no longer have a result."""

    @property
    def freed(self) -> int:
        return sum(self.blobs.values()) + sum(self.leftovers.values())


def remove_garbage(
    store: Store,
    reachable: Collection[str],
    grace: timedelta,
    *,
    dry_run: bool = False,
) -> Garbage:
    """Remove results that are neither reachable, pinned, published nor young, and unused blobs."""
    sweep = GcLease(store.objects)
    with sweep as now:
        garbage = _find(store, {*reachable, *pinned_fingerprints(store)}, now - grace, sweep.beat)
        if not dry_run:
            # Manifests are deleted before their blobs: no result is ever incomplete.
            for keys in (map(result_key, garbage.results), garbage.blobs):
                for key in keys:
                    sweep.beat()
                    store.objects.delete([key])
                store.objects.sync()
            for path in garbage.leftovers:
                path.unlink(missing_ok=True)
    if not dry_run:
        _drop_claims(store, now - _ABANDONED)
        _drop_unfinished(store, now - grace)
        store.objects.delete(garbage.records)
    return garbage


def _drop_claims(store: Store, born: datetime) -> None:
    """Remove claims on jobs that are done, and old ones without a heartbeat.

    Old claims are watched for a while: they may look old only because a clock jumped.
    """
    objects = store.objects
    claimed = {key_name(meta.key) for meta in objects.list(CLAIMS)}
    objects.delete(map(claim_key, store.known(claimed)))

    def old() -> dict[str, str]:
        return {meta.key: meta.tag for meta in _older(objects.list(CLAIMS), born)}

    before = old()
    if before:
        time.sleep(claims.DEAD)
        objects.delete(key for key, tag in old().items() if before.get(key) == tag)


def _drop_unfinished(store: Store, born: datetime) -> None:
    """Remove unfinished work whose job has a result, or that is older than the grace period.

    Unfinished work does not keep its blobs: if they are removed, the job starts from the beginning.
    """
    metas = list(store.objects.list(UNFINISHED))
    done = store.known({key_name(meta.key) for meta in metas})
    store.objects.delete([*map(unfinished_key, done), *(meta.key for meta in _older(metas, born))])


def _find(store: Store, wanted: set[str], born: datetime, beat: Callable[[], None]) -> Garbage:
    """Return everything unreachable that was last written before `born`."""
    metas = list(_with_beat(store.objects.list(RESULTS), beat))
    listed = {key_name(meta.key) for meta in metas}
    old = {key_name(meta.key) for meta in _older(metas, born)}
    kept: set[str] = set()
    remembered: dict[str, set[str]] = {}
    unusable: Unusable = {}
    unwanted: dict[str, tuple[str, Iterable[str]]] = {}
    for result in _with_beat(store.results(listed, unusable), beat):
        remembered[result.fingerprint] = {units_key_of(result.id), record_key(result)}
        if result.spec.task.stage is Stage.PUBLISH:
            wanted |= {result.fingerprint, *result.spec.task.inputs}
        if result.fingerprint in old:
            unwanted[result.fingerprint] = (result.id, result.blobs())
        else:
            kept.update(result.blobs())
    blobs_found = list(_older(_with_beat(store.objects.list(BLOBS), beat), born))
    # Manifests written meanwhile may use old blobs.
    again = list(_with_beat(store.objects.list(RESULTS), beat))
    newer = {key_name(meta.key) for meta in again} - listed
    for result in _with_beat(store.results(newer, unusable), beat):
        remembered[result.fingerprint] = {units_key_of(result.id), record_key(result)}
        kept.update(result.blobs())
    is_blind = False
    for key in {meta.key for meta in (*metas, *again) if key_name(meta.key) in unusable}:
        manifest = store.objects.read(key)
        if manifest is None:  # it was removed meanwhile
            continue
        named = _named_in(manifest)
        if named is None:
            is_blind = True
        else:
            kept |= named
            wanted |= named
    results = {}
    for name, (identifier, blobs) in unwanted.items():
        if name in wanted or is_blind:
            kept.update(blobs)
        else:
            results[name] = identifier
    used = {key for name, keys in remembered.items() if name not in results for key in keys}
    records = (meta for kind in (UNITS, READS) for meta in store.objects.list(kind))
    return Garbage(
        results,
        {
            meta.key: meta.size
            for meta in blobs_found
            if key_name(meta.key) not in kept and not is_blind
        },
        {
            path: status.st_size
            for path, status in store.objects.leftovers()
            if status.st_mtime < born.timestamp()
        },
        len(listed) + len(newer) - len(results),
        unusable,
        is_blind,
        [meta.key for meta in _older(records, born) if meta.key not in used],
    )


def _named_in(manifest: bytes) -> set[str] | None:
    """Return the digests and fingerprints in any kind of manifest; None if it is cut short."""
    try:
        plain = msgspec.json.encode(msgspec.json.decode(manifest))
    except UNDECODABLE:
        return None
    return {name.decode() for name in _NAME.findall(plain)}


def _with_beat(found: Iterable[T], beat: Callable[[], None]) -> Iterator[T]:
    """Yield all items, with a heartbeat before each: a large store takes long to list."""
    for item in found:
        beat()
        yield item


def _older(found: Iterable[ObjectMeta], born: datetime) -> Iterable[ObjectMeta]:
    return (meta for meta in found if meta.modified < born)
