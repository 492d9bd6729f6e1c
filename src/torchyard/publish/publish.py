"""Publish packages: send their bytes, then switch to all of them at once."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from torchyard.errors import ElsewhereError, PublishError
from torchyard.index.entry import SHARED, Entry, State, sort_key
from torchyard.index.sections import section_of
from torchyard.package.zip.inflate import Progress, ignore_progress
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import AGAIN, ChangeReason, Edit
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import TAKEN, PartName, first_part, key_of, parse_part
from torchyard.publish.staged import Package
from torchyard.publish.upload import restore, upload

_CLOSED = ("archived", "quarantined")

_Naming = Callable[[Entry], tuple[str, str]]


class Published(NamedTuple):
    """The channel's new generation, and the packages that it already had."""

    head: Head
    new: tuple[Package, ...]
    there: tuple[Package, ...]


def publish(
    channel: Channel,
    head: Head,
    packages: Sequence[Package],
    reason: ChangeReason,
    progress: Progress = ignore_progress,
) -> Published:
    """Publish packages that have passed all gates.

    The head is the channel's, just read, or that of a new channel. Other processes may change the
    channel meanwhile: files of changed parts, which may have been deleted, are sent again, and so
    are incomplete objects that a state names.
    """
    fresh = [
        package
        for part, members in in_order(packages).items()
        for package in news(part, members, channel.state(head, part))
    ]
    upload(channel.objects, fresh, progress)
    sent = set(map(id, fresh))
    restore(channel.objects, [package for package in packages if id(package) not in sent])
    return switch(channel, head, packages, reason, partial(restore, channel.objects))


def switch(
    channel: Channel,
    head: Head,
    packages: Sequence[Package],
    reason: ChangeReason,
    again: Callable[[Sequence[Package]], None],
) -> Published:
    """Show sent packages; `again` resends objects deleted since the head was read."""
    parts = in_order(packages)
    sure = head.generation
    done: dict[str, list[Package]] = {}

    def amend(now: Head) -> Head:
        nonlocal sure
        if now.generation != sure:
            changed = _changed_since(now, sure)
            again([p for p in packages if changed is None or p.part in changed])
            sure = now.generation
        if not now.generation:
            now = msgspec.structs.replace(now, name=head.name, grouping=head.grouping)
        if now.grouping != head.grouping:
            msg = f"the variants of `{channel.url}` are called after `{now.grouping}`"
            raise PublishError(msg, hint="omit --variants: a channel keeps its own")
        return declaring(now, head.external, head.upstream)

    def edit(part: str, members: Sequence[Package], state: State) -> State:
        done[part] = news(part, members, state)
        return add(parse_part(part), state, [package.entry for package in done[part]])

    edits: dict[str, Edit] = {part: partial(edit, part, parts[part]) for part in parts}
    after = channel.commit(edits, reason, amend)
    new = {id(package) for members in done.values() for package in members}
    return Published(
        after,
        tuple(package for package in packages if id(package) in new),
        tuple(package for package in packages if id(package) not in new),
    )


def declaring(head: Head, external: Iterable[str], upstream: Iterable[str]) -> Head:
    """Return the head with more external names, or the same object if it has them all."""
    names = tuple(sorted({*head.external, *external}))
    addresses = tuple(dict.fromkeys((*head.upstream, *upstream)))
    if (names, addresses) == (head.external, head.upstream):
        return head
    return msgspec.structs.replace(head, external=names, upstream=addresses)


def in_order(packages: Iterable[Package]) -> dict[str, list[Package]]:
    """Return packages by part; requirements come first."""
    parts: dict[str, list[Package]] = {}
    for package in sorted(packages, key=_publishing_sort_key):
        parts.setdefault(package.part, []).append(package)
    ordered: dict[str, list[Package]] = {}
    begun: set[str] = set()

    def take(part: str) -> None:
        if part in parts and part not in begun:
            begun.add(part)  # a cycle has no order
            section = section_of(part)
            needed = {f"{section.NAME}/{name}" for p in parts[part] for name in p.requires}
            for other in () if section.MANY_PROJECTS else sorted(needed):
                take(other)
            ordered[part] = parts[part]

    for part in parts:
        take(part)
    return ordered


def _publishing_sort_key(package: Package) -> tuple[bool, str, tuple[str, str]]:
    first = first_part(parse_part(package.part).section)
    return package.part != first, package.part, sort_key(package.entry)


def news(part: str, packages: Sequence[Package], state: State) -> list[Package]:
    """Return the packages that a state lacks."""
    name_of = _naming(parse_part(part))
    there = _known(name_of, state.entries, [package.entry for package in packages])
    return [
        package
        for package in packages
        if (known := there.get(name_of(package.entry))) is None
        or known.sha256 != package.entry.sha256
        or (package.entry.provenance and not known.provenance)
    ]


def add(part: PartName, state: State, entries: Sequence[Entry]) -> State:
    """Return a state with more files: hidden ones are shown again, none are replaced."""
    if not entries:
        return state
    if state.status in _CLOSED:
        msg = f"`{part}` is {state.status} and takes no new files: {state.status_reason}"
        raise PublishError(msg, hint="make it active first")
    name_of = _naming(part)
    hidden = _known(name_of, (file.entry for file in state.hidden), entries)
    known = hidden | _known(name_of, state.entries, entries)
    alike: dict[str, list[Entry]] = {}
    for entry in known.values():
        alike.setdefault(entry.file, []).append(entry)
    for entry in entries:
        _refuse(part, entry, alike.get(entry.file, ()), state.pending_deletion)
    taken = {name_of(entry): _kept(entry, known.get(name_of(entry))) for entry in entries}
    others = (entry for entry in state.entries if name_of(entry) not in taken)
    return msgspec.structs.replace(
        state,
        entries=tuple(sorted((*others, *taken.values()), key=sort_key)),
        hidden=tuple(file for file in state.hidden if name_of(file.entry) not in taken),
    )


def _refuse(part: PartName, entry: Entry, known: Iterable[Entry], doomed: Collection[str]) -> None:
    """Refuse a file that can't be published, given all known files of its name."""
    if entry.variant in TAKEN:
        msg = f"`{entry.file}` is for `{entry.variant}`, and channels have a folder of that name"
        raise PublishError(msg, hint="rename its variant")
    for other in known:
        shared = not part.rules.HAS_VARIANTS or SHARED in (other.variant, entry.variant)
        if other.sha256 != entry.sha256 and (shared or other.variant == entry.variant):
            msg = f"the channel has a `{entry.file}` with other bytes ({other.sha256[:16]}…)"
            hint = "files are never replaced: publish it under another version or build number"
            raise PublishError(msg, hint=hint)
    if key_of(part, entry) in doomed:
        msg = f"`{entry.file}` is just being deleted from the channel"
        raise ElsewhereError(msg, hint=AGAIN, reason="busy")


def _kept(entry: Entry, known: Entry | None) -> Entry:
    """Return the entry as first published; only a provenance may be added later."""
    if known is None:
        return entry
    return msgspec.structs.replace(known, provenance=entry.provenance or known.provenance)


def _known(
    name_of: _Naming, entries: Iterable[Entry], asked: Iterable[Entry]
) -> dict[tuple[str, str], Entry]:
    """Return the entries whose names were requested."""
    files = {entry.file for entry in asked}
    return {name_of(entry): entry for entry in entries if entry.file in files}


def _naming(part: PartName) -> _Naming:
    """Return a function for the name that an entry must have alone in a part."""
    return sort_key if part.rules.HAS_VARIANTS else lambda entry: (entry.file, SHARED)


def _changed_since(head: Head, generation: int) -> Mapping[str, object] | None:
    """Return the parts changed since a generation, or None if not recorded."""
    since = [change for change in head.log if change.generation > generation]
    if len(since) < head.generation - generation:
        return None
    return dict.fromkeys(part for change in since for part in change.parts)
