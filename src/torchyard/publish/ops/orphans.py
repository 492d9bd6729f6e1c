"""What killed writers left in a channel. Only this lists a bucket."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from torchyard.index.conda.shards import shard_key
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.head import Head, changes_within, live_states, state_key
from torchyard.publish.channel.layout import key_of, parse_part

_PACKAGES = (".whl", ".tar.gz", ".zip", ".conda", ".tar.bz2")
_SHARD = ".msgpack.zst"
_STATES = "states/"


class Orphans(NamedTuple):
    """Objects that nothing leads to, all older than the grace period."""

    parts: Mapping[str, Mapping[str, int]] = {}
    """Packages and shards with their sizes, by the part that they would be published in.

    Those of projects that were never published here are left alone: somebody may be about to.
    """
    states: tuple[str, ...] = ()
    leftovers: tuple[Path, ...] = ()
    """Files of a directory that were never finished."""


def find_orphans(channel: Channel, head: Head, born: datetime) -> Orphans:
    """Everything that was last written before a moment and that nothing leads to."""
    live = set(map(state_key, live_states(head)))
    named = set(_named(channel, head, born))
    parts: dict[str, dict[str, int]] = {}
    for folder in ("packages/", "conda/"):
        for meta in channel.objects.list(folder):
            if meta.modified < born and _is_fixed(meta.key) and meta.key not in named:
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
    """The keys of all packages, and of shards that a page has named since a moment."""
    for name in head.parts:
        part = parse_part(name)
        state = channel.state(head, name)
        for entry in (*state.entries, *(one.entry for one in state.hidden)):
            yield key_of(part, entry)
        recent = changes_within(head, born) if part.shelf == "conda" else ()
        earlier = [change.parts[name][0] for change in recent if name in change.parts]
        for digest in (head.parts[name].state, *earlier):
            for shard in channel.state_at(digest).shards.values():
                yield shard_key(part.name, shard)


def _is_fixed(key: str) -> bool:
    """Whether an object is a package or a shard; the index of shards is neither."""
    return key.endswith(_PACKAGES) or ("/shards/" in key and key.endswith(_SHARD))


def _part(head: Head, key: str) -> str | None:
    """The part in which a package would be published, if there is one."""
    folder, _, file = key.rpartition("/")
    if folder.startswith("conda/"):
        name = "/".join(folder.split("/")[:2])
    elif file.endswith(".whl"):
        name = f"simple/{canonicalize_name(file.partition('-')[0])}"
    elif file.endswith(".zip"):
        zips = (part for part in head.parts if part.startswith("libtorch/"))
        stem = canonicalize_name(file).removeprefix("lib")
        fitting = [part for part in zips if stem.startswith(f"{parse_part(part).name}-")]
        name = max(fitting, key=len, default="")
    else:
        name = f"simple/{canonicalize_name(file.rpartition('-')[0])}"
    return name if name in head.parts else None
