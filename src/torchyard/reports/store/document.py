"""What the store's commands print with `--json`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from torchyard.model.result import Result
from torchyard.model.values import Reported
from torchyard.reports.store.sharing import Holding
from torchyard.store.gc import Garbage
from torchyard.store.store import Unusable
from torchyard.store.verify import Verification


class HeldDocument(Reported, kw_only=True):
    """One result; `own_bytes` are those of files that no other result has."""

    id: str
    fingerprint: str
    started: str
    seconds: float
    files: int
    bytes: int
    own_bytes: int


class StoreDocument(Reported, kw_only=True):
    """`torchyard store ls --json`: `bytes` as results see them, `stored_bytes` as disks do.

    `unusable` says of manifests that can't be used, why.
    """

    version: Literal[1] = 1
    store: str
    bytes: int
    stored_bytes: int
    pins: dict[str, list[str]]
    results: list[HeldDocument]
    unusable: dict[str, str]


class ResultsDocument(Reported, kw_only=True):
    """`torchyard store show --json`: manifests, as they are in the store."""

    version: Literal[1] = 1
    store: str
    results: list[Result]


class VerifyDocument(Reported, kw_only=True):
    """`torchyard store verify --json`: `broken` says of results that can't be used, why."""

    version: Literal[1] = 1
    store: str
    results: int
    blobs: int
    bytes: int
    damaged: list[str]
    broken: dict[str, str]


class GarbageDocument(Reported, kw_only=True):
    """`torchyard store gc --json`: what was removed, or with `dry_run` would be.

    `unusable` says of manifests that can't be used, why; they are kept, with all that they name.
    """

    version: Literal[1] = 1
    store: str
    dry_run: bool
    results: dict[str, str]
    blobs: int
    leftovers: int
    work: list[str]
    freed_bytes: int
    kept: int
    unusable: dict[str, str]


class TransferDocument(Reported, kw_only=True):
    """`torchyard store pull --json` and `push --json`."""

    version: Literal[1] = 1
    source: str
    target: str
    copied: int
    there: int
    unfinished: int = 0
    sent_bytes: int


def store_document(
    url: str,
    holdings: Iterable[Holding],
    stored: int,
    pins: dict[str, list[str]],
    unusable: Unusable,
) -> StoreDocument:
    held = [
        HeldDocument(
            id=holding.result.id,
            fingerprint=holding.result.fingerprint,
            started=holding.result.started,
            seconds=holding.result.seconds,
            files=len(holding.result.tree.files),
            bytes=holding.result.size,
            own_bytes=holding.own,
        )
        for holding in holdings
    ]
    total = sum(result.bytes for result in held)
    return StoreDocument(
        store=url,
        bytes=total,
        stored_bytes=stored,
        pins=pins,
        results=held,
        unusable=_reasons(unusable),
    )


def _reasons(unusable: Unusable) -> dict[str, str]:
    return {name: str(error) for name, error in sorted(unusable.items())}


def verify_document(url: str, verdict: Verification) -> VerifyDocument:
    return VerifyDocument(
        store=url,
        results=verdict.results,
        blobs=verdict.blobs,
        bytes=verdict.bytes,
        damaged=list(verdict.damaged),
        broken=verdict.broken,
    )


def garbage_document(
    url: str, garbage: Garbage, work: Iterable[Path], *, dry_run: bool
) -> GarbageDocument:
    return GarbageDocument(
        store=url,
        dry_run=dry_run,
        results=garbage.results,
        blobs=len(garbage.blobs),
        leftovers=len(garbage.leftovers),
        work=[str(folder) for folder in work],
        freed_bytes=garbage.freed,
        kept=garbage.kept,
        unusable=_reasons(garbage.unusable),
    )
