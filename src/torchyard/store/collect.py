"""Removing what nobody needs: garbage collection."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from torchyard.model.recipe import Stage
from torchyard.store.keys import BLOBS, CLAIMS, RESULTS, SWEEPS, name_of, result_key
from torchyard.store.objects import Meta
from torchyard.store.pins import pinned
from torchyard.store.store import Store
from torchyard.store.sweep import Sweep

_ABANDONED = timedelta(days=1)
"""Whoever claimed a job or announced a sweep, and has said nothing for so long, is gone."""


class Garbage(NamedTuple):
    """What a collection removes: results by identifier, objects and leftover files by name."""

    results: dict[str, str]
    blobs: dict[str, int]
    leftovers: dict[Path, int]
    kept: int

    @property
    def freed(self) -> int:
        return sum(self.blobs.values()) + sum(self.leftovers.values())


def collect(
    store: Store, reachable: Collection[str], grace: timedelta, *, dry_run: bool = False
) -> Garbage:
    """Remove results that are neither reachable, pinned, published nor young, and lone blobs."""
    sweep = Sweep(store.objects)
    with sweep as now:
        garbage = _find(store, {*reachable, *pinned(store)}, now - grace)
        stale = [
            meta.key
            for prefix in (CLAIMS, SWEEPS)
            for meta in _older(store.objects.list(prefix), now - _ABANDONED)
        ]
        if not dry_run:
            # A manifest goes before its blobs: what is left of a result is never half of it.
            for key in (*map(result_key, garbage.results), *garbage.blobs, *stale):
                sweep.beat()
                store.objects.delete([key])
            for path in garbage.leftovers:
                path.unlink(missing_ok=True)
    return garbage


def _find(store: Store, wanted: set[str], born: datetime) -> Garbage:
    """Everything that was last written before a moment and that nothing leads to."""
    listed = {name_of(meta.key) for meta in store.objects.list(RESULTS)}
    old = {name_of(meta.key) for meta in _older(store.objects.list(RESULTS), born)}
    kept: set[str] = set()
    unwanted: dict[str, tuple[str, Iterable[str]]] = {}
    for result in store.results(listed):
        if result.order.task.stage is Stage.PUBLISH:
            wanted |= {result.fingerprint, *result.order.task.inputs}
        if result.fingerprint in old:
            unwanted[result.fingerprint] = (result.id, result.blobs())
        else:
            kept.update(result.blobs())
    results = {}
    for name, (identifier, blobs) in unwanted.items():
        if name in wanted:
            kept.update(blobs)
        else:
            results[name] = identifier
    blobs_found = list(_older(store.objects.list(BLOBS), born))
    # Others may have written manifests while we looked, with blobs that are old.
    newer = {name_of(meta.key) for meta in store.objects.list(RESULTS)} - listed
    for result in store.results(newer):
        kept.update(result.blobs())
    return Garbage(
        results,
        {meta.key: meta.size for meta in blobs_found if name_of(meta.key) not in kept},
        {
            path: status.st_size
            for path, status in store.objects.leftovers()
            if status.st_mtime < born.timestamp()
        },
        len(listed) + len(newer) - len(results),
    )


def _older(found: Iterable[Meta], born: datetime) -> Iterable[Meta]:
    return (meta for meta in found if meta.modified < born)
