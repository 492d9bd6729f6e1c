"""What commands that change a channel print with `--json`."""

from collections.abc import Mapping
from typing import Literal

from torchyard.model.values import Reported
from torchyard.publish.channel.head import Head
from torchyard.publish.ops.pin import PinPage
from torchyard.publish.ops.prune import Pruned
from torchyard.publish.ops.repair_channel import ChannelRepair, HeadSource
from torchyard.publish.select import Chosen, What


class ChangedFileDocument(Reported, kw_only=True):
    """A file of a channel, and what became of it."""

    part: str
    file: str
    release: str
    variant: str
    sha256: str
    bytes: int
    what: What


class ChangedDocument(Reported, kw_only=True):
    """`torchyard yank --json`, `rollback --json`, and `pin --remove --json`, which has no files."""

    version: Literal[1] = 1
    channel: str
    generation: int
    files: list[ChangedFileDocument]


class PruneDocument(Reported, kw_only=True):
    """`torchyard prune --json`: what was done, or with `dry_run` would be.

    `left` counts files that are old enough, but that a rollback may need or that another run
    deletes; `states` counts those that only the log's oldest changes needed.
    """

    version: Literal[1] = 1
    channel: str
    dry_run: bool
    hidden: list[ChangedFileDocument]
    deleted: list[str]
    freed_bytes: int
    left: int
    states: int
    leftovers: int
    mended: list[str]


class LoggedDocument(Reported, kw_only=True):
    """One change, and the parts of the channel that it changed."""

    generation: int
    at: str
    why: str
    parts: list[str]


class LogDocument(Reported, kw_only=True):
    """`torchyard index log --json`: the changes that can be rolled back, the newest first."""

    version: Literal[1] = 1
    channel: str
    generation: int
    changes: list[LoggedDocument]


class MendDocument(Reported, kw_only=True):
    """`torchyard index mend --json`: the pages that were rewritten."""

    version: Literal[1] = 1
    channel: str
    pages: list[str]


class RepairedPartDocument(Reported, kw_only=True):
    """A part that has another state than before; `files` is null if no state of it is left."""

    part: str
    files: int | None


class IndexRepairDocument(Reported, kw_only=True):
    """`torchyard index repair --json`: what was restored, or with `dry_run` would be.

    `head` says where the head is from: it was whole, or a copy or the states of parts were used.
    `unreachable` are generations that can't be rolled back to.
    """

    version: Literal[1] = 1
    channel: str
    dry_run: bool
    generation: int
    head: HeadSource
    parts: list[RepairedPartDocument]
    unreachable: list[int]
    pages: list[str]


def index_repair_document(
    channel: str, done: ChannelRepair, *, dry_run: bool
) -> IndexRepairDocument:
    damage = done.damage
    files = {part: len(state.entries) for part, state in damage.restored.items()}
    parts = {**files, **dict.fromkeys(damage.lost)}
    return IndexRepairDocument(
        channel=channel,
        dry_run=dry_run,
        generation=done.generation,
        head=damage.source,
        parts=[RepairedPartDocument(part=p, files=count) for p, count in sorted(parts.items())],
        unreachable=list(damage.unreachable),
        pages=done.pages,
    )


class PinDocument(Reported, kw_only=True):
    """`torchyard pin --json`: the page of the pin, as it is in the channel."""

    version: Literal[1] = 1
    channel: str
    pin: PinPage


def changed_document(url: str, head: Head, changed: Mapping[What, list[Chosen]]) -> ChangedDocument:
    return ChangedDocument(
        channel=url,
        generation=head.generation,
        files=[_file(one, what) for what, found in changed.items() for one in found],
    )


def _file(chosen: Chosen, what: What) -> ChangedFileDocument:
    entry = chosen.entry
    return ChangedFileDocument(
        part=chosen.part,
        file=entry.file,
        release=entry.version,
        variant=entry.variant,
        sha256=entry.sha256,
        bytes=entry.size,
        what=what,
    )


def prune_document(url: str, pruned: Pruned, *, dry_run: bool) -> PruneDocument:
    return PruneDocument(
        channel=url,
        dry_run=dry_run,
        hidden=[_file(one, "hidden") for one in pruned.hidden],
        deleted=pruned.deleted,
        freed_bytes=pruned.freed,
        left=pruned.left,
        states=pruned.states,
        leftovers=len(pruned.orphans.leftovers),
        mended=list(pruned.mended),
    )


def log_document(url: str, head: Head) -> LogDocument:
    changes = [
        LoggedDocument(
            generation=change.generation, at=change.at, why=change.why, parts=list(change.parts)
        )
        for change in reversed(head.log)
    ]
    return LogDocument(channel=url, generation=head.generation, changes=changes)
