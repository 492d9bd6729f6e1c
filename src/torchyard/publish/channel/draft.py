"""The effects of a channel's change: new states, new pages and a new head, in memory."""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from itertools import takewhile
from typing import NamedTuple

import msgspec

from torchyard.errors import ElsewhereError
from torchyard.host.zstd import LEVEL, compress
from torchyard.index.availability import PackageOffer, offers
from torchyard.index.entry import SHARED, Entry, State, changed
from torchyard.index.page import Page
from torchyard.index.sections import is_in_variants, section_of
from torchyard.index.simple.write import serial_of
from torchyard.index.views import View, home_of, kinds_of, views_made_by
from torchyard.model.canonical import canonical_json
from torchyard.publish.channel.head import HISTORY, Change, ChannelPart, Head
from torchyard.publish.channel.layout import (
    changed_views,
    companions,
    pages,
    parse_part,
    settle,
    shown_in,
)
from torchyard.publish.channel.root_pages import changed_roots
from torchyard.store.tags import content_tag

Edit = Callable[[State], State]
"""Returns the new state of a part; called again after a lost swap."""

Amend = Callable[[Head], Head]
"""Returns the head with changes besides those of its parts."""

AGAIN = (
    "try again in a minute; if a prune was killed, run `torchyard channel prune` two hours later"
)

ROOTS = ""
"""A pseudo name of a part, for the pages made from the head."""


class ChangeReason(NamedTuple):
    """The reason and time of a channel's change, for its log."""

    why: str
    at: str


class Write(NamedTuple):
    """A page, and the tag of the page that it replaces."""

    part: str
    page: Page
    was: str | None


class Draft(NamedTuple):
    """Everything to write: fixed objects and states, then the head, then pages."""

    head: Head
    fixed: list[Page]
    states: dict[str, bytes]
    writes: list[Write]


class _New(NamedTuple):
    state: State
    digest: str
    data: bytes
    fixed: list[Page]
    writes: list[Write]
    touched: list[Entry]


def draft_change(
    head: Head,
    edits: Mapping[str, Edit],
    reason: ChangeReason,
    amend: Amend,
    read: Callable[[str], State],
) -> Draft | None:
    """Apply edits to a channel in the order of parts; return None if nothing changes."""
    edits = {**dict.fromkeys(companions(edits, head.parts), _as_it_is), **edits}
    olds = {name: read(name) for name in edits}
    news = {name: _edited(olds[name], edit) for name, edit in edits.items()}
    amended = amend(head)
    variants = _variants(amended, news)
    fresh = set(variants).difference(head.variants)
    if fresh:  # files for several indexes appear in new ones before the files that need them
        shared = {
            name: read(name)
            for name, part in head.parts.items()
            if name not in edits and _may_be_in(part, fresh)
        }
        olds |= shared
        news = shared | news
    made = {
        name: new
        for name, state in news.items()
        if (new := _new(name, olds[name], state, variants, head.generation + 1))
    }
    if not made and amended is head:
        return None
    changes = {
        name: (head.parts[name].state if name in head.parts else "", new.digest)
        for name, new in made.items()
    }
    change = Change(
        generation=head.generation + 1,
        at=reason.at,
        why=reason.why,
        parts=changes,
        run=secrets.token_hex(8),
    )
    parts = {name: _part(name, new, head.parts.get(name), variants) for name, new in made.items()}
    new_head = msgspec.structs.replace(
        amended,
        generation=change.generation,
        parts={**head.parts, **parts},
        log=(*amended.log, change)[-HISTORY:],
    )

    def read_new(name: str) -> State:
        return made[name].state if name in made else read(name)

    new_head, roots = changed_roots(head, new_head, made, read_new)
    writes = [write for new in made.values() for write in new.writes]
    return Draft(
        head=new_head,
        fixed=[page for new in made.values() for page in new.fixed],
        states={new.digest: new.data for new in made.values()},
        writes=[*writes, *(Write(ROOTS, page, head.tags.get(page.path)) for page in roots)],
    )


def _as_it_is(state: State) -> State:
    return state


def _edited(old: State, edit: Edit) -> State:
    """Return the state after an edit, which can't change the pages."""
    new = edit(old)
    if new is not old:
        new = msgspec.structs.replace(
            new, serials=old.serials, shards=old.shards, tags=old.tags, run=old.run
        )
    return old if new == old else new


def _new(
    name: str, old: State, state: State, variants: tuple[str, ...], generation: int
) -> _New | None:
    """Return a new state with its pages, or None if it is the old one."""
    part = parse_part(name)
    touched = changed(old, state)
    views = changed_views(part, old, state, touched, variants)
    if not views and state is old:
        return None
    serials = {**state.serials, **dict.fromkeys(views, generation)}
    state, fixed = settle(part, msgspec.structs.replace(state, serials=serials), touched)
    if {page.path for page in fixed}.intersection(state.pending_deletion):
        msg = f"objects that `{name}` needs are being deleted"
        raise ElsewhereError(msg, hint=AGAIN, reason="busy")
    made = list(pages(part, state, views))
    tags = {**state.tags, **{page.path: content_tag(page.data) for page in made}}
    state = msgspec.structs.replace(state, tags=tags, run=secrets.token_hex(8))
    data = compress(canonical_json(state), LEVEL)
    writes = [Write(name, page, old.tags.get(page.path)) for page in made]
    return _New(state, sha256(data).hexdigest(), data, fixed, writes, touched)


def needs(head: Head, part: str, found: Mapping[str, bytes | None]) -> list[str]:
    """Return parts to check before the wrong pages of another part.

    The writer of these pages may have been killed. `found` are the existing pages: all changes
    since theirs are in question, with their parts in order.
    """
    plain = (serial_of(data) for path, data in found.items() if not path.endswith(".zst"))
    since = min(plain, default=0)
    folders = {path.partition("/")[0] for path in found}
    names: dict[str, None] = {}
    for change in head.log:
        if change.generation > since and (part in change.parts or part == ROOTS):
            names.update(dict.fromkeys(takewhile(lambda name: name != part, change.parts)))
    return [name for name in names if part != ROOTS or _is_listed(head, name, folders)]


def _is_listed(head: Head, name: str, folders: set[str]) -> bool:
    """Return whether lists in these folders name pages of a part."""
    part = head.parts[name]
    lists = {name.partition("/")[0], *part.variants, *(head.variants if part.shared else ())}
    return not lists.isdisjoint(folders)


def _may_be_in(part: ChannelPart, views: Iterable[str]) -> bool:
    """Return whether a part may have files for new views: shared, or of a view's variant."""
    return part.shared or any(View.parse(view).variant in part.variants for view in views)


def _variants(head: Head, news: Mapping[str, State]) -> tuple[str, ...]:
    """Return the variants that a channel will have."""
    entries = (
        entry for name, state in news.items() if is_in_variants(name) for entry in state.entries
    )
    return tuple(sorted(views_made_by(kinds_of(entries)).union(head.variants)))


def _part(name: str, new: _New, old: ChannelPart | None, variants: Collection[str]) -> ChannelPart:
    kinds = kinds_of(new.state.entries)
    own = {kind for kind in kinds if kind[0] != SHARED}
    views = {variant for variant, _ in own}
    homes: set[View] = set()
    if is_in_variants(name):
        views |= shown_in(own, variants)
        homes = set(map(home_of, own))
    return ChannelPart(
        state=new.digest,
        variants=tuple(sorted(views)),
        shared=own != kinds,
        torch_views=tuple(sorted(str(home) for home in homes if home.torch)),
        offers=_offers(name, new, old),
    )


def _offers(name: str, new: _New, old: ChannelPart | None) -> tuple[PackageOffer, ...]:
    """Return what a part offers; a conda subdir has many names, of which few change at once."""
    if new.state.status == "quarantined":
        return ()
    section, part = section_of(name), parse_part(name).name
    if old is None or not section.MANY_PROJECTS:
        return offers(name, new.state.entries)
    names = {section.project(part, entry) for entry in new.touched}
    kept = [offer for offer in old.offers if offer.name not in names]
    touched = [entry for name in names for entry in section.files_of(new.state, name)]
    fresh = offers(name, touched)
    return tuple(sorted([*kept, *fresh], key=lambda offer: (offer.name, offer.variant)))
