"""Repair a channel whose head or states are damaged: truncated, or overwritten by a user.

The head is restored from its copy, or rebuilt from the states of its parts. Pages are written after
the head, so a state with all its pages was published. A part whose state is lost goes back to its
newest remaining state.
"""

from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

from torchyard.errors import StoreError
from torchyard.host.zstd import LEVEL, compress
from torchyard.index.entry import WHOLE, State
from torchyard.index.sections import SECTIONS
from torchyard.model.canonical import canonical_json
from torchyard.model.values import UNDECODABLE
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ROOTS, ChangeReason
from torchyard.publish.channel.head import (
    HEAD,
    HEAD_COPIES,
    ChannelPart,
    Head,
    live_states,
    state_key,
)
from torchyard.publish.channel.layout import key_of, pages, parse_part
from torchyard.store.keys import key_name
from torchyard.store.objects import Identity

_STATES = "states/"
_LOST = "its state was lost"

HeadSource = Literal["whole", "copy", "states"]
"""The head is readable, is restored from its copy, or is rebuilt from remaining states."""


class _Found(NamedTuple):
    """A readable state."""

    state: State
    is_shown: bool
    """Whether all of its pages match it."""
    rank: tuple[bool, bool, int, float]
    """The order of preference among a part's states: shown, in the log, generation, time."""


class Damage(NamedTuple):
    """The damage of a channel, and the possible repairs."""

    source: HeadSource
    head: Head
    """The undamaged parts."""
    tag: str | None
    restored: Mapping[str, State]
    """Parts that get another state than the head's, limited to existing packages."""
    lost: tuple[str, ...]
    """Parts without any remaining state."""
    unreachable: tuple[int, ...]
    """Generations that can't be restored, because they lost a state."""

    @property
    def is_none(self) -> bool:
        return self.source == "whole" and not (self.restored or self.lost)


class ChannelRepair(NamedTuple):
    """A repair: the damage, the generation after it, and rewritten pages."""

    damage: Damage
    generation: int
    pages: list[str]


def repair_channel(channel: Channel, reason: ChangeReason, *, dry_run: bool) -> ChannelRepair:
    """Restore the head and the parts of a channel as far as possible, then all pages."""
    damage = find_damage(channel)
    if dry_run:
        return ChannelRepair(damage, damage.head.generation, [])
    head = damage.head
    if not damage.is_none:
        lost = {part: _lost(channel, head, part, state) for part, state in damage.restored.items()}
        head = msgspec.structs.replace(head, parts={**head.parts, **lost})
        channel.begin_with(head, damage.tag)
        edits = {part: partial(_restored, state) for part, state in damage.restored.items()}
        head = channel.commit(edits, reason, msgspec.structs.replace)
    return ChannelRepair(damage, head.generation, channel.mend([*head.parts, ROOTS]))


def _restored(old: State, now: State) -> State:
    """Return the state to show, or the one made by a faster repair."""
    return old if now.status_reason == _LOST else now


def _lost(channel: Channel, head: Head, part: str, state: State) -> ChannelPart:
    """Return a part in a pseudo state for the lost one, so that all pages are replaced.

    It has no files, and a special status, which all pages of a part show.
    """
    name = parse_part(part)
    views = dict.fromkeys((*head.variants, *state.serials, WHOLE), head.generation)
    empty = State(serials=views, status_reason=_LOST)
    paths = {view: [page.path for page in pages(name, empty, [view])] for view in views}
    there = {view for view, own in paths.items() if any(map(channel.objects.head, own))}
    shown = {view: serial for view, serial in views.items() if view in there}
    data = compress(canonical_json(msgspec.structs.replace(empty, serials=shown)), LEVEL)
    digest = sha256(data).hexdigest()
    channel.objects.ensure(state_key(digest), data, Identity(len(data), digest))
    return ChannelPart(state=digest)


def find_damage(channel: Channel) -> Damage:
    """Inspect the head and all states of a channel."""
    source, head, tag = _read_head(channel)
    left = _newest_states(channel, head)
    whole: set[str] = set()
    restored: dict[str, State] = {}
    lost: list[str] = []
    for name in {**head.parts, **left} if source != "whole" else head.parts:
        known = _readable(channel, head.parts[name].state) if name in head.parts else None
        newest = left.get(name)
        is_newer = newest is not None and newest.is_shown and source != "whole"
        if known is not None and not (is_newer and newest and _last(newest.state) > _last(known)):
            whole.add(name)
        elif newest is not None:
            restored[name] = _present(channel, name, newest.state)
        else:
            lost.append(name)
    generation = max([head.generation, *(_last(found.state) for found in left.values())])
    kept = {name: part for name, part in head.parts.items() if name in whole}
    base = msgspec.structs.replace(head, parts=kept, generation=generation)
    return Damage(source, base, tag, restored, tuple(lost), _unreachable(channel, head))


def _read_head(channel: Channel) -> tuple[HeadSource, Head, str | None]:
    """Return the head or its newest readable copy, and the tag of the current object."""
    found = channel.objects.read_tagged(HEAD)
    data, tag = found or (b"", None)
    if (head := _decoded(data)) is not None:
        return "whole", head, tag
    copies = [_decoded(channel.objects.read(key) or b"") for key in HEAD_COPIES]
    newest = max(filter(None, copies), key=lambda head: head.generation, default=None)
    if newest is not None:
        return "copy", newest, tag
    if next(channel.objects.list(_STATES), None) is None:
        msg = f"`{channel.url}` has neither a head nor states: there is nothing to restore it from"
        raise StoreError(msg, hint="restore `channel.json` from a backup, or publish again")
    return "states", Head(), tag


def _decoded(data: bytes) -> Head | None:
    try:
        return msgspec.json.decode(data, type=Head)
    except UNDECODABLE:
        return None


def _newest_states(channel: Channel, head: Head) -> dict[str, _Found]:
    """Return the newest state of each part, besides the head's."""
    current = {part.state for part in head.parts.values()}
    logged = live_states(head)
    found: dict[str, _Found] = {}
    for meta in channel.objects.list(_STATES):
        digest = key_name(meta.key.removesuffix(".zst"))
        if digest in current:
            continue
        state = _readable(channel, digest)
        part = _part_of(state) if state else None
        if state is None or part is None:
            continue
        is_shown = all(channel.objects.tag(path) == tag for path, tag in state.tags.items())
        rank = (is_shown, digest in logged, _last(state), meta.modified.timestamp())
        if part not in found or found[part].rank < rank:
            found[part] = _Found(state, is_shown, rank)
    return found


def _present(channel: Channel, part: str, state: State) -> State:
    """Return a state without the files pruned since."""
    name = parse_part(part)
    there = tuple(
        entry
        for entry in state.entries
        if (meta := channel.objects.head(key_of(name, entry))) and meta.size == entry.size
    )
    return msgspec.structs.replace(state, entries=there, pending_deletion=())


def _readable(channel: Channel, digest: str) -> State | None:
    try:
        return channel.state_at(digest)
    except StoreError:
        return None


def _part_of(state: State) -> str | None:
    """Return the part of a state, from the paths of its pages."""
    for path in state.tags:
        section, _, rest = path.partition("/")
        if section in SECTIONS:
            return f"{section}/{rest.partition('/')[0]}"
    return None


def _last(state: State) -> int:
    """Return the generation that last changed the pages of a state."""
    return max(state.serials.values(), default=0)


def _unreachable(channel: Channel, head: Head) -> tuple[int, ...]:
    gone = {digest for digest in live_states(head) if _readable(channel, digest) is None}
    return tuple(
        change.generation
        for change in head.log
        if not gone.isdisjoint(digest for pair in change.parts.values() for digest in pair)
    )
