"""A row of figures for each result of a store, which stays when the result is collected."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec

from torchyard.errors import TorchyardError
from torchyard.insight.build_record import LOG
from torchyard.insight.ninja_log import read_ninja_log
from torchyard.model.identifier import job_series
from torchyard.model.result import Result, Tree
from torchyard.model.selector import named_jobs
from torchyard.model.values import UNDECODABLE, Reported
from torchyard.store.keys import HISTORY, history_key, key_name
from torchyard.store.store import Store
from torchyard.store.trees import fetch_tree

_REPORT = "check.json"
_SHORT_UNIT = 0.5
"""Units that take fewer seconds are left out."""


class HistoryRow(Reported, kw_only=True):
    """The figures of a result by kind and name, such as `library/torch/lib/libc10.so`."""

    version: Literal[1] = 1
    fingerprint: str
    job: str
    release: str
    commit: str
    started: str
    machine: str
    metrics: dict[str, float]

    @property
    def series(self) -> str:
        """The job without its version: the same in every nightly."""
        return job_series(self.job)


class _Device(msgspec.Struct):
    arch: str
    bytes: int


class _Library(msgspec.Struct):
    member: str
    bytes: int
    exports: int


class _Package(msgspec.Struct):
    device: list[_Device]
    libraries: list[_Library]


class _Report(msgspec.Struct):
    """What counts of a `check.json`."""

    findings: dict[str, int]
    packages: list[_Package]


def history_row(store: Store, result: Result) -> HistoryRow:
    """Return the figures of a result; what can't be read of it is left out."""
    metrics = {"time": result.seconds, "size": float(result.size), **_cache_rate(result)}
    wanted = [file for file in result.tree.files if Path(file.path).name in (_REPORT, LOG)]
    if wanted:
        with TemporaryDirectory(prefix="torchyard-history-") as folder:
            try:
                fetch_tree(store, Tree(files=tuple(wanted)), Path(folder))
            except TorchyardError:  # the figures of the manifest are something, too
                wanted = []
            for file in wanted:
                path = Path(folder, file.path)
                metrics |= _checked(path) if path.name == _REPORT else _units(path)
    task = result.order.task
    return HistoryRow(
        fingerprint=result.fingerprint,
        job=result.id,
        release=task.label.rpartition("-")[2],
        commit=result.order.commit,
        started=result.started,
        machine=result.machine,
        metrics=metrics,
    )


def _cache_rate(result: Result) -> dict[str, float]:
    try:
        hits, misses = (int(result.facts[name]) for name in ("cache_hits", "cache_misses"))
    except (KeyError, ValueError):
        return {}
    return {"cache": round(100 * hits / (hits + misses), 1)} if hits + misses else {}


def _checked(path: Path) -> dict[str, float]:
    try:
        report = msgspec.json.decode(path.read_bytes(), type=_Report)
    except UNDECODABLE:
        return {}
    found = {f"findings/{severity}": float(count) for severity, count in report.findings.items()}
    for package in report.packages:
        for code in package.device:
            name = f"device/{code.arch}"
            found[name] = found.get(name, 0) + code.bytes
        for library in package.libraries:
            found[f"library/{library.member}"] = library.bytes
            found[f"exports/{library.member}"] = library.exports
    return found


def _units(path: Path) -> dict[str, float]:
    try:
        entries = read_ninja_log(path)
    except TorchyardError:
        return {}
    return {
        f"unit/{entry.outputs[0]}": round(entry.seconds, 1)
        for entry in entries
        if entry.seconds >= _SHORT_UNIT
    }


def keep_row(store: Store, fingerprint: str) -> None:
    """Write the row of a result that is about to be removed.

    If that fails, it is lost: what is removed may be what makes room on a full disk.
    """
    with suppress(TorchyardError, OSError):
        result = store.find(fingerprint)
        if result is not None:
            row = msgspec.json.encode(history_row(store, result))
            store.objects.write(history_key(fingerprint), row)


def history_rows(store: Store, words: Collection[str] = ()) -> list[HistoryRow]:
    """Return the rows of all results, and of those that were collected, the oldest first."""
    kept = {row.fingerprint: row for row in _kept_rows(store)}
    results = {result.fingerprint: result for result in store.results(unusable={})}
    jobs = {key: row.job for key, row in kept.items()}
    jobs |= {key: result.id for key, result in results.items()}
    chosen = named_jobs(jobs, words)
    rows = [history_row(store, results[k]) if k in results else kept[k] for k in chosen]
    return sorted(rows, key=lambda row: (row.started, row.fingerprint))


def _kept_rows(store: Store) -> Iterator[HistoryRow]:
    for meta in store.objects.list(HISTORY):
        data = store.objects.read(meta.key)
        try:
            row = msgspec.json.decode(data or b"", type=HistoryRow)
        except UNDECODABLE:  # cut off, or written by a newer torchyard
            continue
        if row.fingerprint == key_name(meta.key):
            yield row
