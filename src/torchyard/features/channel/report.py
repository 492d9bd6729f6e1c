"""Changes of a channel's files."""

from collections.abc import Iterable, Sequence
from typing import Literal

from torchyard.model.quantity import show_count, show_size
from torchyard.model.values import Reported
from torchyard.publish.ops.pin import PinPage
from torchyard.publish.select import What
from torchyard.terminal.tables import Lines, folded, number, styled, table, word


class ChangedFile(Reported, kw_only=True):
    """A file of a channel, and its change."""

    part: str
    file: str
    release: str
    variant: str
    sha256: str
    bytes: int
    what: What


class ChangeReport(Reported, kw_only=True):
    """`torchyard channel yank --json` and `rollback --json`."""

    version: Literal[1] = 1
    channel: str
    generation: int
    files: list[ChangedFile]


class PinReport(Reported, kw_only=True):
    """`torchyard channel pin --json`: the pin's page in the channel, or null if removed."""

    version: Literal[1] = 1
    channel: str
    generation: int
    name: str
    pin: PinPage | None


class PruneReport(Reported, kw_only=True):
    """`torchyard channel prune --json`: what was done, or with `dry_run` would be.

    `left` counts old files that a rollback may need or that another run deletes; `states` counts
    states that only the log's oldest changes needed.
    """

    version: Literal[1] = 1
    channel: str
    dry_run: bool
    hidden: list[ChangedFile]
    deleted: list[str]
    freed_bytes: int
    left: int
    states: int
    leftovers: int
    mended: Sequence[str]


def channel_yank_text(report: ChangeReport) -> Lines:
    """Show how many files of each version were changed, and how."""
    where = f"{report.channel}: generation {report.generation}"
    if not report.files:
        yield styled(f"{where}, nothing had to change")
        return
    yield from _files(report.files)
    yield styled(f"{where}, {show_count(len(report.files), 'file')}")


channel_rollback_text = channel_yank_text


def _files(files: Iterable[ChangedFile]) -> Lines:
    rows: dict[tuple[str, str, str, str], list[ChangedFile]] = {}
    for file in files:
        key = (file.part, file.variant or "all", file.release, file.what)
        rows.setdefault(key, []).append(file)
    columns = (*map(folded, ("part", "variant", "version")), word("is"))
    yield table(
        (*columns, number("files"), number("size")),
        (
            (*row, str(len(found)), show_size(sum(file.bytes for file in found)))
            for row, found in rows.items()
        ),
        tight=True,
    )
    yield ""


def channel_pin_text(report: PinReport) -> Lines:
    """Show the versions of a pin, and its pages."""
    pin = report.pin
    if pin is None:
        yield styled(f"{report.channel}: the pin {report.name} is removed")
        return
    rows: dict[tuple[str, str, str], list[int]] = {}
    for file in pin.files:
        rows.setdefault((file.project, file.version, file.commit[:12]), []).append(file.size)
    yield table(
        (folded("project"), folded("version"), word("commit"), number("files"), number("size")),
        ((*row, str(len(sizes)), show_size(sum(sizes))) for row, sizes in rows.items()),
    )
    yield ""
    count = show_count(len(pin.files), "file")
    yield styled(f"{report.channel}: pins/{pin.name}.json names {count}")


def channel_prune_text(report: PruneReport) -> Lines:
    """Show hidden files, and how much was deleted."""
    if report.hidden:
        yield from _files(report.hidden)
    did = "would be " if report.dry_run else ""
    yield styled(
        f"{report.channel}: {show_count(len(report.hidden), 'file')} {did}hidden, "
        f"{show_count(len(report.deleted), 'file')} {did}deleted: {show_size(report.freed_bytes)}"
    )
    if report.left:
        yield styled(f"{show_count(report.left, 'file')} left for later")
    if report.states or report.leftovers:
        states = show_count(report.states, "old state")
        leftovers = show_count(report.leftovers, "leftover")
        yield styled(f"{states} and {leftovers} {did}deleted")
    if report.mended:
        yield styled(f"{show_count(len(report.mended), 'page')} mended")
