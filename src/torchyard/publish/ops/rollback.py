"""Rollback: a new change that restores the files of an earlier generation.

History is never rewritten. Files published since are hidden; until they are pruned, another
rollback shows them again.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from torchyard.errors import Diagnostic, PublishError, SelectionError
from torchyard.index.entry import Entry, Hidden, State
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.head import Change, Head
from torchyard.publish.channel.layout import PartName, key_of, parse_part
from torchyard.publish.select import Chosen, What

_NAMED = 10
"""The most missing files to list."""


class Restored(NamedTuple):
    """The new head of a channel, and the changes of its files."""

    head: Head
    changes: dict[What, list[Chosen]]


def rollback(channel: Channel, generation: int | None, reason: ChangeReason) -> Restored:
    """Restore the files of a generation, or for None, undo the last change.

    Pins and project statuses stay. A concurrent change of the channel is an error, because it would
    be lost.
    """
    head = channel.head()
    to = head.generation - 1 if generation is None else generation
    undone = changes_since(head, to, channel.url)
    before: dict[str, str] = {}
    changes: dict[str, list[tuple[What, Entry]]] = {}
    for change in undone:
        for part, (old, _) in change.parts.items():
            before.setdefault(part, old)

    def edit_of(name: str) -> Edit:
        def edit(now: State) -> State:
            then = channel.state_at(before[name])
            new = restored(parse_part(name), now, then.entries, reason.at)
            changes[name] = list(_differences(now, new))
            return new

        return edit

    def amend(found: Head) -> Head:
        if found.generation != head.generation:
            msg = f"`{channel.url}` was changed meanwhile: {found.log[-1].why}"
            raise PublishError(
                msg, hint="look at `torchyard channel log`, and choose a generation again"
            )
        return found

    parts = [name for name in reversed(head.parts) if name in before]
    done = channel.commit({name: edit_of(name) for name in parts}, reason, amend)
    changed: dict[What, list[Chosen]] = {}
    for name, found in changes.items():
        for what, entry in found:
            changed.setdefault(what, []).append(Chosen(name, entry))
    if generation is None and not changed:
        msg = f"the last change of `{channel.url}` neither showed nor hid files: {head.log[-1].why}"
        raise PublishError(msg, hint="`torchyard channel log` lists others: --generation NUMBER")
    return Restored(done, changed)


def changes_since(head: Head, generation: int, url: str) -> list[Change]:
    """Return the changes after a generation, the oldest first; raise if the log lacks any."""
    oldest = head.log[0].generation - 1 if head.log else head.generation
    if not oldest <= generation < head.generation:
        msg = f"`{url}` can't go back to generation {generation} from {head.generation}"
        hint = (
            f"`torchyard channel log` lists all changes; it can go back to {oldest} or later"
            if oldest < head.generation
            else "the channel has no change to undo"
        )
        raise SelectionError(msg, hint=hint)
    return [change for change in head.log if change.generation > generation]


def restored(part: PartName, now: State, then: Iterable[Entry], at: str) -> State:
    """Return a state with the files of an earlier one; raise if any was deleted.

    Equal entries are kept, so that only affected pages change.
    """
    shown = {_name(entry): entry for entry in now.entries}
    hidden = {_name(file.entry): file for file in now.hidden}
    doomed = set(now.pending_deletion)
    entries: list[Entry] = []
    gone: list[Entry] = []
    for entry in then:
        name = _name(entry)
        if name in shown:
            entries.append(shown[name] if shown[name] == entry else entry)
        elif name in hidden and key_of(part, entry) not in doomed:
            entries.append(entry)
        else:
            gone.append(entry)
    if gone:
        raise PublishError.of([_gone(part, entry) for entry in gone[:_NAMED]])
    names = {_name(entry) for entry in entries}
    return replace(
        now,
        entries=tuple(entries),
        hidden=tuple(
            chain(
                (file for name, file in hidden.items() if name not in names),
                (Hidden(entry=e, since=at) for name, e in shown.items() if name not in names),
            )
        ),
    )


def _differences(old: State, new: State) -> Iterator[tuple[What, Entry]]:
    """Yield the files that a new state shows, hides or yanks."""
    before = {_name(entry): entry for entry in old.entries}
    for entry in new.entries:
        known = before.pop(_name(entry), None)
        if known is None:
            yield "shown", entry
        elif known.yanked != entry.yanked:
            yield "offered" if entry.yanked is None else "yanked", entry
        elif known.patch != entry.patch:
            yield "corrected", entry
    yield from (("hidden", entry) for entry in before.values())


def _name(entry: Entry) -> tuple[str, str, str]:
    return entry.file, entry.variant, entry.sha256


def _gone(part: PartName, entry: Entry) -> Diagnostic:
    what = f"`{entry.file}` of {part} was deleted, and can't be restored"
    return Diagnostic(what, hint="choose a later generation, or publish it again")
