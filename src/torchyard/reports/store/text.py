"""The store, for people."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from torchyard.model.quantity import show_count, show_duration, show_size
from torchyard.model.result import File, Result
from torchyard.reports.store.sharing import Holding
from torchyard.store.gc import Garbage
from torchyard.store.verify import Verification
from torchyard.terminal.tables import SHORT, folded, number, table, word

_LISTED = 200
"""How many files of a result are listed one by one."""

_DEPTH = 2
"""By how many folders the files of a larger result are listed."""


def store_report(
    url: str, held: list[Holding], stored: int, pins: Mapping[str, Iterable[str]]
) -> RenderableType:
    """List results with their sizes, and the bytes that no other result has."""
    results = table(
        (folded("result"), word("fingerprint"), number("size"), number("own"), word("made"))
    )
    for result, own in held:
        made = result.started[:16].replace("T", " ")
        size = show_size(result.size)
        results.add_row(result.id, result.fingerprint[:SHORT], size, show_size(own), made)
    total = sum(holding.result.size for holding in held)
    saved = f"; sharing saves {1 - stored / total:.0%}" if 0 < stored < total else ""
    line = (
        f"{show_count(len(held), 'result')}, {show_size(total)} in files, "
        f"{show_size(stored)} stored with logs{saved}"
    )
    kept = [f"pin {name}: {show_count(len(list(p)), 'result')}" for name, p in pins.items()]
    return Group(results, "", Text(f"{url}: {line}"), *kept) if held else Text(f"{url} is empty")


def result_report(result: Result) -> RenderableType:
    """Show one result: its origin, the cost of each step, and its files."""
    about = {
        "job": result.id,
        "fingerprint": result.fingerprint,
        "made": f"{result.started} on {result.machine}, torchyard {result.torchyard}",
        "took": show_duration(result.seconds) + _tries(" in {} tries", result.tries),
        **result.facts,
    }
    parts: list[RenderableType] = [
        table((word(style="bold"), folded()), about.items(), header=False)
    ]
    steps = table((folded("step"), *map(number, ("seconds", "cpu", "memory", "disk"))))
    for used in result.steps:
        amounts = (f"{used.seconds:.1f}", f"{used.cpu:.1f}")
        step = used.step + _tries(" ({} tries)", used.tries)
        steps.add_row(step, *amounts, show_size(used.memory), show_size(used.disk))
    for listed in (steps, _files(result.tree.files)):
        if listed.row_count:
            parts += ["", listed]
    return Group(*parts)


def _files(files: Sequence[File]) -> Table:
    """List files; many, such as those of a build tree, by the first folders of their paths."""
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


def verify_report(url: str, verdict: Verification) -> RenderableType:
    checked = (
        f"{url}: {show_count(verdict.results, 'result')}, {show_count(verdict.blobs, 'blob')}, "
        f"{show_size(verdict.bytes)} read again"
    )
    if verdict.is_clean:
        return Text(f"{checked}: all is as it should be")
    lines = [f"damaged blob {digest}" for digest in verdict.damaged]
    lines += [f"broken result {name[:SHORT]}: {why}" for name, why in verdict.broken.items()]
    return Group(checked, *map(Text, lines))


def garbage_report(
    url: str, garbage: Garbage, work: Iterable[Path], *, dry_run: bool
) -> RenderableType:
    did = "would remove" if dry_run else "removed"
    lines = [Text(f"{did} {name[:SHORT]} {what}") for name, what in garbage.results.items()]
    lines += [Text(f"{did} {folder}") for folder in work]
    total = (
        f"{url}: {did} {show_count(len(garbage.results), 'result')}, "
        f"{show_count(len(garbage.blobs), 'blob')}, "
        f"{show_count(len(garbage.leftovers), 'leftover')}: {show_size(garbage.freed)}; "
        f"{show_count(garbage.kept, 'result')} kept"
    )
    return Group(*lines, Text(total))
