"""Find leftovers of killed writers in a channel; nothing else lists a bucket."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from torchyard.index.sections import SECTIONS
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.head import Head, changes_within, live_states, state_key
from torchyard.publish.channel.layout import key_of, parse_part

_STATES = "states/"


class Orphans(NamedTuple):
    """Objects that no page or state refers to, all older than the grace period."""

    parts: Mapping[str, Mapping[str, int]] = {}
    """Packages and shards with their sizes, by the part to publish them in.

    Files of projects that were never published here are kept: a publish may be under way.
    """
    states: tuple[str, ...] = ()
    leftovers: tuple[Path, ...] = ()
    """Unfinished files of a directory."""


def find_orphans(channel: Channel, head: Head, born: datetime) -> Orphans:
    """Return unreferenced objects last written before a moment."""
    live = set(map(state_key, live_states(head)))
    named = set(_named(channel, head, born))
    parts: dict[str, dict[str, int]] = {}
    folders = (f"{name}/" for name, rules in SECTIONS.items() if rules.KEYED_BY_NAME)
    for folder in ("packages/", *folders):
        for meta in channel.objects.list(folder):
            if meta.modified < born and meta.key not in named:
                name = _part(head, meta.key)
                if name is not None:
                    parts.setdefault(name, {})[meta.key] = meta.size
    return Orphans(
        parts,
        tuple(
            meta.key
            for meta in channel.objects.list(_STATES)
            if meta.modified < born and meta.key not in live
        ),
        tuple(
            path
            for path, status in channel.objects.leftovers()
            if status.st_mtime < born.timestamp()
        ),
    )


def _named(channel: Channel, head: Head, born: datetime) -> Iterator[str]:
    """Yield the keys of all packages, and of shards named by pages since a moment."""
    for name in head.parts:
        part = parse_part(name)
        state = channel.state(head, name)
        for entry in (*state.entries, *(hidden.entry for hidden in state.hidden)):
            yield key_of(part, entry)
        recent = changes_within(head, born) if part.rules.KEYED_BY_NAME else ()
        earlier = [change.parts[name][0] for change in recent if name in change.parts]
        for digest in (head.parts[name].state, *earlier):
            yield from part.rules.fixed_keys(part.name, channel.state_at(digest))


def _part(head: Head, key: str) -> str | None:
    """Return the part for publishing a package or a shard, if there is one."""
    for name, section in SECTIONS.items():
        parts = [part.partition("/")[2] for part in head.parts if part.startswith(f"{name}/")]
        found = section.part_of_key(key, parts)
        if found is not None:
            return f"{name}/{found}" if found in parts else None
    return None
