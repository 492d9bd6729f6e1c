"""Going back: parts of a channel get the files that they had, as a new change.

History is never rewritten. What was published since is hidden, and may be shown again by going
back once more, until it is pruned.
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
"""So many missing files are told one by one."""


class Restored(NamedTuple):
    """What a channel has now, and what became of files by that."""

    head: Head
    changes: dict[What, list[Chosen]]


def rollback(channel: Channel, generation: int | None, order: ChangeReason) -> Restored:
    """Show again what a generation showed; with None, what was there before the last change.

    Pins stay, and so does what is said of projects. A change by somebody else meanwhile is not
    taken back unseen: it is an error.
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
            new = restored(parse_part(name), now, then.entries, order.at)
            changes[name] = list(_differences(now, new))
            return new

        return edit

    def amend(found: Head) -> Head:
        if found.generation != head.generation:
            msg = f"somebody changed `{channel.url}` meanwhile: {found.log[-1].why}"
            raise PublishError(msg, hint="look at `torchyard index log`, and say again where to go")
        return found

    parts = [name for name in reversed(head.parts) if name in before]
    done = channel.commit({name: edit_of(name) for name in parts}, order, amend)
    told: dict[What, list[Chosen]] = {}
    for name, found in changes.items():
        for what, entry in found:
            told.setdefault(what, []).append(Chosen(name, entry))
    if generation is None and not told:
        msg = f"the last change of `{channel.url}` showed and hid no file: {head.log[-1].why}"
        raise PublishError(msg, hint="`torchyard index log` lists the others: say --to GENERATION")
    return Restored(done, told)


def changes_since(head: Head, generation: int, url: str) -> list[Change]:
    """The changes after a generation, the oldest first; an error if they are not all known."""
    oldest = head.log[0].generation - 1 if head.log else head.generation
    if not oldest <= generation < head.generation:
        msg = f"`{url}` can't go back to generation {generation} from {head.generation}"
        hint = (
            f"`torchyard index log` tells of all changes; it can go back to {oldest} or later"
            if oldest < head.generation
            else "nothing that could be taken back has been done to it"
        )
        raise SelectionError(msg, hint=hint)
    return [change for change in head.log if change.generation > generation]


def restored(part: PartName, now: State, then: Iterable[Entry], at: str) -> State:
    """A state with the files of then; what has been deleted since is an error.

    Entries that are the same are kept as they are, so that only pages change that must.
    """
    shown = {_name(entry): entry for entry in now.entries}
    hidden = {_name(one.entry): one for one in now.hidden}
    doomed = set(now.doomed)
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
                (one for name, one in hidden.items() if name not in names),
                (Hidden(entry=e, since=at) for name, e in shown.items() if name not in names),
            )
        ),
    )


def _differences(old: State, new: State) -> Iterator[tuple[What, Entry]]:
    """What a new state says of files that the old one did not."""
    before = {_name(entry): entry for entry in old.entries}
    for entry in new.entries:
        known = before.pop(_name(entry), None)
        if known is None:
            yield "shown", entry
        elif known.yanked != entry.yanked:
            yield "offered" if entry.yanked is None else "yanked", entry
    yield from (("hidden", entry) for entry in before.values())


def _name(entry: Entry) -> tuple[str, str, str]:
    return entry.file, entry.variant, entry.sha256


def _gone(part: PartName, entry: Entry) -> Diagnostic:
    what = f"`{entry.file}` of {part} has been deleted, and can't be shown again"
    return Diagnostic(what, hint="go back less far, or publish it again")
