"""Inspect, copy and remove the results in a store."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from torchyard.config.load import load_config
from torchyard.errors import UsageError
from torchyard.features.store.report import (
    GarbageReport,
    HeldResult,
    ResultsReport,
    StoreReport,
    TransferReport,
    VerifyReport,
)
from torchyard.model.quantity import parse_duration
from torchyard.package.zip.writer import Member, writing
from torchyard.plan.build import make_plan
from torchyard.plan.select import PlanSelection
from torchyard.run.cleanup import tidy
from torchyard.store.gc import remove_garbage
from torchyard.store.pins import add_pin, list_pins, remove_pin
from torchyard.store.select import select_results, select_unfinished
from torchyard.store.store import Store, Unusable
from torchyard.store.transfer import copy, copy_unfinished
from torchyard.store.trees import fetch_all, read_result_log
from torchyard.store.verify import holdings, remove_broken, verify
from torchyard.workspace.locations import home_directory, open_store
from torchyard.workspace.toolchain_id import with_toolchain_id

_FILE = "torchyard.toml"


def list_results(
    selectors: Sequence[str] = (), *, file: str = _FILE, store: str | None = None
) -> StoreReport:
    """Return results with their sizes, and the sizes of unshared files."""
    opened = open_store(store, file, make=False)
    unusable: Unusable = {}
    held, stored = holdings(select_results(opened, selectors, unusable))
    return StoreReport(
        store=opened.url,
        bytes=sum(result.result.size for result in held),
        stored_bytes=stored,
        pins={name: list(kept.results) for name, kept in list_pins(opened)},
        results=[
            HeldResult(
                id=result.result.id,
                fingerprint=result.result.fingerprint,
                started=result.result.started,
                seconds=result.result.seconds,
                files=len(result.result.tree.files),
                bytes=result.result.size,
                own_bytes=result.own,
            )
            for result in held
        ],
        unusable=_reasons(unusable),
    )


def _reasons(unusable: Unusable) -> dict[str, str]:
    return {name: str(error) for name, error in sorted(unusable.items())}


def find_results(
    selectors: Sequence[str], *, file: str = _FILE, store: str | None = None
) -> ResultsReport:
    """Return the manifests of results."""
    opened = open_store(store, file, make=False)
    return ResultsReport(store=opened.url, results=list(select_results(opened, selectors)))


def result_logs(found: ResultsReport) -> Iterator[Iterable[bytes]]:
    """Yield the log of each result, in pieces."""
    opened = Store.at(found.store, make=False)
    return (read_result_log(opened, result) for result in found.results)


def zip_logs(found: ResultsReport, archive: str) -> None:
    """Write logs to a reproducible zip, each under its job's name."""
    names = [f"{r.id.replace(':', '/')}-{r.fingerprint[:12]}.log" for r in found.results]
    logs = zip(names, result_logs(found), strict=True)
    with writing(Path(archive)) as writer:
        writer.add(Member(name, b"".join(pieces)) for name, pieces in sorted(logs))


def take_files(
    selectors: Sequence[str], folder: str, *, file: str = _FILE, store: str | None = None
) -> Iterable[Path]:
    """Copy the files of results from the store to a directory."""
    opened = open_store(store, file, make=False)
    return fetch_all(opened, select_results(opened, selectors), Path(folder))


def verify_store(
    *, remove: bool = False, file: str = _FILE, store: str | None = None
) -> VerifyReport:
    """Compare everything with its digests, and optionally remove damaged results."""
    opened = open_store(store, file, make=False)
    found = verify(opened)
    if remove:
        remove_broken(opened, found)
    return VerifyReport(
        store=opened.url,
        results=found.results,
        blobs=found.blobs,
        bytes=found.bytes,
        damaged=found.damaged,
        broken=found.broken,
        removed=remove,
    )


def collect_garbage(
    *,
    plans: Sequence[str] = (),
    grace: str = "24 h",
    dry_run: bool = False,
    file: str = _FILE,
    store: str | None = None,
) -> GarbageReport:
    """Remove results that no plan, channel or pin needs, and outdated work.

    Args:
        plans: Configurations whose results are kept, instead of `file`.
        grace: Everything newer than this is kept.
        dry_run: Only report what would be removed.
        file: The configuration.
        store: The store, if it is not the file's.
    """
    try:
        age = timedelta(seconds=0 if grace == "0" else parse_duration(grace))
    except ValueError as error:
        raise UsageError(str(error)) from error
    opened = open_store(store, file, make=False)
    kept = _fingerprints(plans or (file,), opened)
    garbage = remove_garbage(opened, kept, age, dry_run=dry_run)
    work = tidy(Path(home_directory(file), "work"), kept, age.total_seconds(), dry_run=dry_run)
    return GarbageReport(
        store=opened.url,
        dry_run=dry_run,
        results=garbage.results,
        blobs=len(garbage.blobs),
        leftovers=len(garbage.leftovers),
        work=list(map(str, work)),
        freed_bytes=garbage.freed,
        kept=garbage.kept,
        unusable=_reasons(garbage.unusable),
        is_blind=garbage.is_blind,
    )


def _fingerprints(files: Sequence[str], store: Store) -> set[str]:
    """Return the fingerprints of all jobs in the files' plans, for any machine's toolchain."""
    found: set[str] = set()
    anywhere: set[str] = set()
    for file in files:
        config = load_config(file)
        here = with_toolchain_id(config, file)
        for subset in (None, *config.subsets):
            for known, planned in ((found, here), (anywhere, config)):
                plan = make_plan(planned, PlanSelection(subset))
                known.update(plan.fingerprints)
    if anywhere != found:
        usable = store.results(unusable={})  # the others are kept anyway
        found |= {r.fingerprint for r in usable if r.spec.anywhere in anywhere}
    return found


def keep_results(
    name: str, selectors: Sequence[str], *, file: str = _FILE, store: str | None = None
) -> int:
    """Keep results under a name; return their number."""
    opened = open_store(store, file, make=False)
    found = [result.fingerprint for result in select_results(opened, selectors)]
    return len(add_pin(opened, name, found).results)


def release_results(name: str, *, file: str = _FILE, store: str | None = None) -> None:
    """Remove a pin."""
    remove_pin(open_store(store, file, make=False), name)


def pull_results(
    url: str, selectors: Sequence[str] = (), *, file: str = _FILE, store: str | None = None
) -> TransferReport:
    """Copy results from another store into this one."""
    return _transfer(Store.at(url, make=False), open_store(store, file), selectors)


def push_results(
    url: str, selectors: Sequence[str] = (), *, file: str = _FILE, store: str | None = None
) -> TransferReport:
    """Copy results from this store into another one."""
    return _transfer(open_store(store, file, make=False), Store.at(url), selectors)


def _transfer(source: Store, target: Store, selectors: Sequence[str]) -> TransferReport:
    done = copy(source, target, select_results(source, selectors))
    begun = copy_unfinished(source, target, select_unfinished(source, selectors))
    return TransferReport(
        source=source.url,
        target=target.url,
        copied=done.results,
        unfinished=begun.results,
        there=done.there,
        sent_bytes=done.sent + begun.sent,
    )
