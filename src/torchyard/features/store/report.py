"""The results in a store, and changes of them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from torchyard.errors import StoreError
from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.model.result import File, Result
from torchyard.model.values import Reported
from torchyard.terminal.console import say, warn
from torchyard.terminal.tables import SHORT, Lines, folded, number, styled, table, word
from torchyard.terminal.untrusted import printable

if TYPE_CHECKING:  # slow to import
    from rich.table import Table

_LISTED = 200
"""The most files of a result to list one by one."""
_DEPTH = 2
"""The number of leading folders that group the files of a larger result."""
_WARNINGS = 10
"""The most unusable manifests to name."""


class HeldResult(Reported, kw_only=True):
    """A result; `own_bytes` are of files that no other result has."""

    id: str
    fingerprint: str
    started: str
    seconds: float
    files: int
    bytes: int
    own_bytes: int


class StoreReport(Reported, kw_only=True):
    """`torchyard store ls --json`: `bytes` as results see them, `stored_bytes` as disks do.

    `unusable` maps unusable manifests to reasons.
    """

    version: Literal[1] = 1
    store: str
    bytes: int
    stored_bytes: int
    pins: dict[str, list[str]]
    results: list[HeldResult]
    unusable: dict[str, str]


class ResultsReport(Reported, kw_only=True):
    """`torchyard store show --json`: manifests, as they are in the store."""

    version: Literal[1] = 1
    store: str
    results: list[Result]


class VerifyReport(Reported, kw_only=True):
    """`torchyard store verify --json`: `broken` maps unusable results to reasons."""

    version: Literal[1] = 1
    store: str
    results: int
    blobs: int
    bytes: int
    damaged: Sequence[str]
    broken: dict[str, str]
    removed: bool


class GarbageReport(Reported, kw_only=True):
    """`torchyard store gc --json`: what was removed, or with `dry_run` would be.

    `unusable` maps unusable manifests to reasons; they are kept, with all files they name. If one
    does not even show these, `is_blind` is true, and nothing is removed.
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
    is_blind: bool


class TransferReport(Reported, kw_only=True):
    """`torchyard store pull --json` and `push --json`."""

    version: Literal[1] = 1
    source: str
    target: str
    copied: int
    there: int
    unfinished: int
    sent_bytes: int


def store_ls_text(report: StoreReport) -> Lines:
    """List results with their sizes, and the bytes that no other result has."""
    if not report.results:
        yield styled(f"{report.store} is empty")
        _warn_of(report.unusable)
        return
    yield table(
        (folded("result"), word("fingerprint"), number("size"), number("own"), word("made")),
        (
            (
                result.id,
                result.fingerprint[:SHORT],
                show_size(result.bytes),
                show_size(result.own_bytes),
                result.started[:16].replace("T", " "),
            )
            for result in report.results
        ),
    )
    yield ""
    total, stored = report.bytes, report.stored_bytes
    saved = f"; sharing saves {1 - stored / total:.0%}" if 0 < stored < total else ""
    yield styled(
        f"{report.store}: {show_count(len(report.results), 'result')}, {show_size(total)} in "
        f"files, {show_size(stored)} stored with logs{saved}"
    )
    for name, kept in report.pins.items():
        yield f"pin {name}: {show_count(len(kept), 'result')}"
    _warn_of(report.unusable)


def _warn_of(unusable: Mapping[str, str]) -> None:
    """Name unusable manifests on standard error, and the fix."""
    if unusable:
        found = [printable(why) for why in unusable.values()]
        if more := found[_WARNINGS:]:
            found[_WARNINGS:] = [f"{show_count(len(more), 'more manifest')} can't be used"]
        warn(found)
        say("hint: `torchyard store verify --remove` removes them, so that they are made again")


def store_show_text(report: ResultsReport) -> Lines:
    for result in report.results:
        yield from _result(result)


def _result(result: Result) -> Lines:
    """Show a result: its origin, the cost of each step, and its files."""
    about = {
        "job": result.id,
        "fingerprint": result.fingerprint,
        "made": f"{result.started} on {result.machine}, torchyard {result.torchyard}",
        "took": show_duration(result.seconds) + _tries(" in {} tries", result.tries),
        **result.facts,
    }
    yield table((word(style="bold"), folded()), about.items(), header=False)
    steps = table((folded("step"), *map(number, ("seconds", "cpu", "memory", "disk"))))
    for used in result.steps:
        amounts = (f"{used.seconds:.1f}", f"{used.cpu:.1f}")
        step = used.step + _tries(" ({} tries)", used.tries)
        steps.add_row(step, *amounts, show_size(used.memory), show_size(used.disk))
    for listed in (steps, _files(result.tree.files)):
        if listed.row_count:
            yield ""
            yield listed
    yield ""


def _files(files: Sequence[File]) -> "Table":
    """List files; many, such as a build tree's, by the first folders of their paths."""
    if len(files) <= _LISTED:
        return table(
            (folded("file"), number("size"), word("sha256")),
            ((file.path, show_size(file.size), file.digest[:SHORT]) for file in files),
        )
    sizes: dict[str, list[int]] = {}
    for file in files:
        folders = file.path.split("/")[:-1]
        sizes.setdefault("/".join((*folders[:_DEPTH], "")), []).append(file.size)
    sizes["(all; --json lists them)"] = [file.size for file in files]
    return table(
        (folded("folder"), number("files"), number("size")),
        (
            (folder or "(no folder)", f"{len(found):,}", show_size(sum(found)))
            for folder, found in sizes.items()
        ),
    )


def _tries(text: str, count: int) -> str:
    return text.format(count) if count > 1 else ""


def store_verify_text(report: VerifyReport) -> Lines:
    checked = (
        f"{report.store}: {show_count(report.results, 'result')}, "
        f"{show_count(report.blobs, 'blob')}, {show_size(report.bytes)} read again"
    )
    if not report.damaged and not report.broken:
        yield styled(f"{checked}: all is as it should be")
        return
    yield checked
    yield from (styled(f"damaged blob {digest}") for digest in report.damaged)
    for name, why in report.broken.items():
        yield styled(f"broken result {name[:SHORT]}: {why}")
    if report.removed:
        yield styled(f"removed {len(report.damaged):,} blobs and {len(report.broken):,} results")


def store_verify_error(report: VerifyReport) -> StoreError | None:
    if report.removed or not (report.damaged or report.broken):
        return None
    msg = f"the store `{report.store}` is damaged"
    return StoreError(msg, hint="--remove removes damaged results, so that they are made again")


def store_gc_text(report: GarbageReport) -> Lines:
    did = "would remove" if report.dry_run else "removed"
    for name, what in report.results.items():
        yield styled(f"{did} {name[:SHORT]} {what}")
    yield from (styled(f"{did} {folder}") for folder in report.work)
    yield styled(
        f"{report.store}: {did} {show_count(len(report.results), 'result')}, "
        f"{show_count(report.blobs, 'blob')}, {show_count(report.leftovers, 'leftover')}: "
        f"{show_size(report.freed_bytes)}; {show_count(report.kept, 'result')} kept"
    )
    if report.is_blind:
        warn(["no result and no blob is removed: a damaged manifest may name any of them"])
    _warn_of(report.unusable)


def store_pull_text(report: TransferReport) -> Lines:
    yield (
        f"{show_count(report.copied, 'result')} copied ({show_size(report.sent_bytes)}), "
        f"{report.there:,} there already"
    )
    if report.unfinished:
        yield f"{show_count(report.unfinished, 'unfinished job')} copied"


store_push_text = store_pull_text
