"""Changes of a channel, for people."""

from collections.abc import Iterable, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from torchyard.model.quantity import show_count, show_size
from torchyard.publish.ops.repair_channel import HeadSource
from torchyard.reports.channel.document import (
    ChangedDocument,
    ChangedFileDocument,
    IndexRepairDocument,
    LogDocument,
    MendDocument,
    PinDocument,
    PruneDocument,
)
from torchyard.terminal.tables import folded, number, table, word


def changed_report(document: ChangedDocument) -> RenderableType:
    """Show how many files of each version were changed, and how."""
    where = f"{document.channel}: generation {document.generation}"
    if not document.files:
        return Text(f"{where}, nothing had to change")
    count = show_count(len(document.files), "file")
    return Group(_files(document.files), "", Text(f"{where}, {count}"))


def _files(files: Iterable[ChangedFileDocument]) -> Table:
    rows: dict[tuple[str, str, str, str], list[ChangedFileDocument]] = {}
    for file in files:
        key = (file.part, file.variant or "all", file.release, file.what)
        rows.setdefault(key, []).append(file)
    columns = (*map(folded, ("part", "variant", "version")), word("is"))
    return table(
        (*columns, number("files"), number("size")),
        (
            (*row, str(len(found)), show_size(sum(file.bytes for file in found)))
            for row, found in rows.items()
        ),
        tight=True,
    )


def prune_report(document: PruneDocument) -> RenderableType:
    """Show what was hidden, and how much was deleted."""
    lines: list[RenderableType] = [_files(document.hidden), ""] if document.hidden else []
    did = "would be " if document.dry_run else ""
    lines.append(
        Text(
            f"{document.channel}: {show_count(len(document.hidden), 'file')} {did}hidden, "
            f"{show_count(len(document.deleted), 'file')} {did}deleted: "
            f"{show_size(document.freed_bytes)}"
        )
    )
    if document.left:
        lines.append(Text(f"{show_count(document.left, 'file')} left for later"))
    if document.states or document.leftovers:
        states = show_count(document.states, "old state")
        leftovers = show_count(document.leftovers, "leftover")
        lines.append(Text(f"{states} and {leftovers} {did}deleted"))
    if document.mended:
        lines.append(Text(f"{show_count(len(document.mended), 'page')} mended"))
    return Group(*lines)


def log_report(document: LogDocument) -> RenderableType:
    """List the changes of a channel, the newest first."""
    if not document.changes:
        return Text(f"{document.channel}: nothing that could be taken back has been done to it")
    return table(
        (number("generation"), word("when"), folded("what")),
        (
            (str(change.generation), change.at[:16].replace("T", " "), Text(change.why))
            for change in document.changes
        ),
    )


def mend_report(document: MendDocument) -> RenderableType:
    """List the pages that were rewritten."""
    count = show_count(len(document.pages), "page")
    return Group(*map(Text, document.pages), Text(f"{document.channel}: {count} mended"))


_HEADS: Mapping[HeadSource, str] = {
    "whole": "the head is whole",
    "copy": "the head is restored from its copy",
    "states": "the head is made of states; its name, its pins and its log are lost",
}


def index_repair_report(document: IndexRepairDocument) -> RenderableType:
    """List what was restored, and what is lost."""
    lines = [_HEADS[document.head]]
    for part in document.parts:
        if part.files is None:
            lines.append(f"{part.part} is lost; publish its packages again")
        else:
            count = show_count(part.files, "file")
            lines.append(f"{part.part} shows {count}; publish again what is missing")
    if document.unreachable:
        gone = ", ".join(map(str, document.unreachable))
        lines.append(f"states are missing, so there is no rollback past generation {gone}")
    pages = show_count(len(document.pages), "page")
    done = "nothing was changed" if document.dry_run else f"{pages} rewritten"
    return Group(
        *map(Text, lines), Text(f"{document.channel}: generation {document.generation}, {done}")
    )


def pin_report(document: PinDocument) -> RenderableType:
    """Show what a pin keeps, and where its pages are."""
    pin = document.pin
    rows: dict[tuple[str, str, str], list[int]] = {}
    for file in pin.files:
        rows.setdefault((file.project, file.version, file.commit[:12]), []).append(file.size)
    files = table(
        (folded("project"), folded("version"), word("commit"), number("files"), number("size")),
        ((*row, str(len(sizes)), show_size(sum(sizes))) for row, sizes in rows.items()),
    )
    line = f"{document.channel}: pins/{pin.name}.json names {show_count(len(pin.files), 'file')}"
    return Group(files, "", Text(line))
