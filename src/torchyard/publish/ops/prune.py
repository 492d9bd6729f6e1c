"""Pruning: old versions are hidden first, and deleted after a grace period.

Deletion takes three steps: a change marks keys as pending deletion, their objects are deleted,
another change removes the marks. A marked key cannot be published, so no page ever names a file
that is being deleted. If a run is killed in between, a later run continues with the marked keys.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from secrets import token_hex
from typing import NamedTuple

from msgspec.structs import replace

from torchyard.errors import StoreError
from torchyard.index.entry import Entry, Hidden, State, changed
from torchyard.package.delivered import PROVENANCE, STATEMENT
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ROOTS, ChangeReason, Edit
from torchyard.publish.channel.head import Head, Pin, changes_within, live_states, state_key
from torchyard.publish.channel.layout import PartName, key_of, parse_part, settle
from torchyard.publish.ops.orphans import Orphans, find_orphans
from torchyard.publish.ops.retention import Keep, outdated, pinned_files
from torchyard.publish.select import Chosen, project_of, public
from torchyard.publish.staged import METADATA

LEASE = 1800.0
"""Seconds in which a run may delete the keys that it marked."""

ABANDONED = timedelta(hours=2)
"""Seconds after which marked keys can be taken over: the lease is over, even for slow requests.

Unreferenced objects older than this are orphans.
"""

_MARK = "doomed/"
"""Prefix of a name among the marked keys that is not an object's key."""

TOGETHER = 100_000
"""The most files in memory at once, unless a single part has more."""


class Pruned(NamedTuple):
    """Hidden and deleted files, or files that would be."""

    hidden: list[Chosen]
    deleted: list[str]
    """Keys of packages."""
    freed: int
    left: int
    """Files that another run deletes, or that were left for lack of time."""
    orphans: Orphans
    states: int = 0
    mended: tuple[str, ...] = ()


class _Look(NamedTuple):
    """The work on a part."""

    name: str
    files: int
    outdated: list[Chosen]
    pending_deletion: dict[str, int]
    """Keys that may be deleted, with their sizes."""
    lost: Collection[str]
    """The orphans among them."""
    serials: Mapping[str, int]
    """Tags of the inspected pages."""
    abandoned: tuple[str, ...]
    """Keys marked by a killed run."""
    left: int
    unreachable: int
    """The last generation that can't be restored once these are deleted."""


class _Run(NamedTuple):
    """The channel at the start of pruning, and the work to do."""

    channel: Channel
    head: Head
    keep: Keep
    reason: ChangeReason

    @property
    def now(self) -> datetime:
        return datetime.fromisoformat(self.reason.at)

    @property
    def born(self) -> datetime:
        """Objects written before this moment may be deleted."""
        return self.now - self.keep.grace


def prune(
    channel: Channel,
    keep: Keep,
    reason: ChangeReason,
    *,
    orphans: bool = False,
    dry_run: bool = False,
) -> Pruned:
    """Hide old versions, and delete files hidden for longer than the grace period.

    Parts change in reverse order of publishing: dependents first.
    """
    names = [*channel.head().parts, ROOTS]
    mended = {} if dry_run else {name: channel.mend([name]) for name in names}
    while True:
        run = _Run(channel, channel.head(), keep, reason)
        try:
            lost, found = _survey(run, orphans=orphans)
        except StoreError:
            if channel.head().generation == run.head.generation:
                raise
            continue  # another prune was faster, and deleted an object we need
        break
    looks = [_spared(look) if mended.get(look.name) else look for look in found]
    pruned = Pruned([], [], 0, sum(look.left for look in looks), lost)
    if dry_run:
        doomed = {key: size for look in looks for key, size in look.pending_deletion.items()}
        old = [entry for look in looks for entry in look.outdated]
        return pruned._replace(hidden=old, deleted=_files(doomed), freed=sum(doomed.values()))
    for group in _groups(look for look in looks if look.outdated or look.pending_deletion):
        pruned = _carry_out(run, group, pruned)
    states = _forget(run, max((look.unreachable for look in looks), default=0))
    channel.objects.delete([*map(state_key, states), *lost.states])
    for path in lost.leftovers:
        path.unlink(missing_ok=True)
    return pruned._replace(
        states=len(states) + len(lost.states),
        mended=tuple(path for paths in mended.values() for path in paths),
    )


def _survey(run: _Run, *, orphans: bool) -> tuple[Orphans, list[_Look]]:
    """Return unreferenced objects, and the work on each part."""
    lost = Orphans()
    if orphans:  # other runs may be active
        lost = find_orphans(run.channel, run.head, min(run.born, run.now - ABANDONED))
    names = reversed(run.head.parts)
    return lost, [_look(run, name, lost.parts.get(name, {})) for name in names]


def _look(run: _Run, name: str, lost: Mapping[str, int]) -> _Look:
    """Read a part, and return the work on it."""
    part = parse_part(name)
    state = run.channel.state(run.head, name)
    old = outdated(part, state.entries, run.keep, run.head.pins.values())
    sizes = {key_of(part, entry.entry): entry.entry.size for entry in state.hidden}
    expired = sizes.keys() - _kept(part, state, run.head.pins.values(), run.born)
    busy = expired.intersection(state.pending_deletion)
    wanted = expired - busy
    protected, unreachable = _history(run, part, wanted)
    doomed = {key: sizes[key] for key in sorted(wanted - protected)} | dict(lost)
    abandoned: tuple[str, ...] = ()
    if state.pending_deletion and _is_abandoned(run, name):
        abandoned = state.pending_deletion
        doomed |= {key: sizes.get(key, 0) for key in state.pending_deletion}
        doomed[f"{_MARK}{token_hex(8)}"] = 0
        busy = set()
    chosen = [Chosen(name, entry) for entry in old]
    left = len(busy) + len(protected)
    return _Look(
        name,
        len(state.entries),
        chosen,
        doomed,
        set(lost),
        state.serials,
        abandoned,
        left,
        unreachable,
    )


def _spared(look: _Look) -> _Look:
    """Spare files that a killed writer's stale pages named until their repair."""
    left = look.left + len(look.pending_deletion)
    return look._replace(pending_deletion={}, abandoned=(), left=left, unreachable=0)


def _kept(part: PartName, state: State, pins: Iterable[Pin], born: datetime) -> set[str]:
    """Return the keys of files that are shown, recently hidden, or pinned."""
    stay = pinned_files(pins)
    hidden = (
        entry.entry
        for entry in state.hidden
        if datetime.fromisoformat(entry.since) >= born
        or (project_of(part, entry.entry), public(entry.entry.version)) in stay
    )
    return _named(part, [*state.entries, *hidden])


def _is_abandoned(run: _Run, name: str) -> bool:
    """Return whether a state is so old that its writer can't be active."""
    meta = run.channel.objects.head(state_key(run.head.parts[name].state))
    return meta is not None and meta.modified < run.now - ABANDONED


def _named(part: PartName, entries: Iterable[Entry]) -> set[str]:
    return {key_of(part, entry) for entry in entries}


def _history(run: _Run, part: PartName, keys: Collection[str]) -> tuple[set[str], int]:
    """Return the keys that a rollback may need, and the oldest change to keep.

    A rollback may restore anything shown within the grace period.
    """
    head = run.head
    protected: set[str] = set()
    recent = {change.generation for change in changes_within(head, run.born)}
    for change in reversed(head.log) if keys else ():
        if str(part) in change.parts:
            before = run.channel.state_at(change.parts[str(part)][0])
            found = _named(part, before.entries).intersection(keys)
            if change.generation in recent:
                protected |= found
            elif found - protected:
                return protected, change.generation
    return protected, 0


def _groups(looks: Iterable[_Look]) -> Iterator[list[_Look]]:
    """Group parts to change together: the log limits the number of changes."""
    group: list[_Look] = []
    for look in looks:
        if group and sum(name.files for name in group) + look.files > TOGETHER:
            yield group
            group = []
        group.append(look)
    if group:
        yield group


class _PinnedMeanwhileError(Exception):
    """A version was pinned just before it was hidden."""


def _carry_out(run: _Run, group: Sequence[_Look], before: Pruned) -> Pruned:
    """Hide and mark files of parts, delete the marked ones, and remove the marks."""
    began = time.monotonic()
    hidden, doomed = _hide_and_doom(run, group)
    sizes = {key: size for look in group for key, size in look.pending_deletion.items()}
    deleted: set[str] = set()
    for key in (key for keys in doomed.values() for key in keys):
        if time.monotonic() - began < LEASE:
            run.channel.objects.delete(_with_sidecars(key))
            deleted.add(key)
    edits = {name: _clear(parse_part(name), keys, deleted) for name, keys in doomed.items() if keys}
    if edits:
        run.channel.commit(edits, run.reason)
    return before._replace(
        hidden=[*before.hidden, *hidden],
        deleted=[*before.deleted, *_files(deleted)],
        freed=before.freed + sum(sizes[key] for key in deleted),
        left=before.left + sum(map(len, doomed.values())) - len(deleted),
    )


def _files(keys: Iterable[str]) -> list[str]:
    return sorted(key for key in keys if not key.startswith(_MARK))


def _hide_and_doom(run: _Run, group: Sequence[_Look]) -> tuple[list[Chosen], dict[str, list[str]]]:
    """Hide outdated files, and mark deletable ones; return the keys that we may delete."""
    hidden: dict[str, list[Entry]] = {}
    doomed: dict[str, list[str]] = {}

    def edit_of(look: _Look, pins: Mapping[str, Pin]) -> Edit:
        part = parse_part(look.name)

        def edit(state: State) -> State:
            old = hidden[look.name] = outdated(part, state.entries, run.keep, pins.values())
            new = _without(state, old, run.reason.at)
            needed = (page.path for page in settle(part, new, changed(state, new))[1])
            kept = _kept(part, state, pins.values(), run.born).union(needed)
            mine = doomed[look.name] = _mine(state, look, kept)
            return (
                replace(new, pending_deletion=tuple(sorted({*state.pending_deletion, *mine})))
                if mine
                else new
            )

        return edit

    while True:
        pins = run.channel.head().pins

        def amend(head: Head, pins: Mapping[str, Pin] = pins) -> Head:
            if head.pins != pins:
                raise _PinnedMeanwhileError
            return head

        try:
            edits = {look.name: edit_of(look, pins) for look in group}
            run.channel.commit(edits, run.reason, amend)
        except _PinnedMeanwhileError:
            continue
        return [Chosen(name, entry) for name, old in hidden.items() for entry in old], doomed


def _without(state: State, old: Collection[Entry], at: str) -> State:
    """Return a state with files hidden."""
    if not old:
        return state
    gone = set(map(id, old))
    return replace(
        state,
        entries=tuple(entry for entry in state.entries if id(entry) not in gone),
        hidden=(*state.hidden, *(Hidden(entry=entry, since=at) for entry in old)),
    )


def _mine(state: State, look: _Look, kept: Collection[str]) -> list[str]:
    """Return the keys that this run may delete: not kept, and not marked by an active run.

    A run that takes over marked keys adds a name to them, so that only one run succeeds. Objects
    may be referenced again if pages have changed since.
    """
    taken = set(look.abandoned) if look.abandoned == state.pending_deletion else set()
    found = look.lost if look.serials != state.serials else ()
    others = {*kept, *state.pending_deletion, *look.abandoned, *found}
    return [key for key in look.pending_deletion if key in taken or key not in others]


def _with_sidecars(key: str) -> list[str]:
    """Return the objects of a package; conda packages have at most one sidecar, others three."""
    ends = (METADATA, PROVENANCE, STATEMENT) if key.startswith("packages/") else (STATEMENT,)
    return [key, *(f"{key}{end}" for end in ends)]


def _clear(part: PartName, doomed: Iterable[str], deleted: Collection[str]) -> Edit:
    """Remove the marks, so that the keys can be reused, and entries of deleted files."""
    ours = set(doomed)

    def edit(state: State) -> State:
        return replace(
            state,
            hidden=tuple(f for f in state.hidden if key_of(part, f.entry) not in deleted),
            pending_deletion=tuple(key for key in state.pending_deletion if key not in ours),
        )

    return edit


def _forget(run: _Run, generation: int) -> set[str]:
    """Drop changes that can no longer be rolled back; return the states that only they used."""
    dropped: set[str] = set()

    def amend(head: Head) -> Head:
        old = [change for change in head.log if change.generation <= generation]
        dropped.update(digest for c in old for pair in c.parts.values() for digest in pair)
        return replace(head, log=head.log[len(old) :]) if old else head

    if generation:
        dropped -= live_states(run.channel.commit({}, run.reason, amend))
    return dropped - {""}
