"""What killed writers left in a channel. Only this lists a bucket."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from torchyard.publish.channel import Channel
from torchyard.publish.head import Head, live_states, state_key
from torchyard.publish.shelves import key_of, parse_part

_PACKAGES = (".whl", ".zip", ".conda", ".tar.bz2")
_STATES = "states/"


class Orphans(NamedTuple):
    """Objects that nothing leads to, all older than the grace period."""

    parts: Mapping[str, Mapping[str, int]] = {}
    """Packages with their sizes, by the part that they would be published in.

    Those of projects that were never published here are left alone: somebody may be about to.
    """
    states: tuple[str, ...] = ()
    leftovers: tuple[Path, ...] = ()
    """Files of a directory that were never finished."""


def find_orphans(channel: Channel, head: Head, born: datetime) -> Orphans:
    """Everything that was last written before a moment and that nothing leads to."""
    named = set(map(state_key, live_states(head)))
    for name in head.parts:
        part = parse_part(name)
        state = channel.state(head, name)
        hidden = (one.entry for one in state.hidden)
        named.update(key_of(part, entry) for entry in (*state.entries, *hidden))
    parts: dict[str, dict[str, int]] = {}
    for folder in ("packages/", "conda/"):
        for meta in channel.objects.list(folder):
            if meta.modified < born and meta.key.endswith(_PACKAGES) and meta.key not in named:
                for name in _parts(head, meta.key):
                    parts.setdefault(name, {})[meta.key] = meta.size
    states = channel.objects.list(_STATES)
    return Orphans(
        parts,
        tuple(meta.key for meta in states if meta.modified < born and meta.key not in named),
        tuple(
            path
            for path, status in channel.objects.leftovers()
            if status.st_mtime < born.timestamp()
        ),
    )


def _parts(head: Head, key: str) -> list[str]:
    """The parts in which a package could be published; a zip does not tell its project."""
    folder, _, file = key.rpartition("/")
    if folder.startswith("conda/"):
        names = [folder]
    elif file.endswith(".zip"):
        names = [name for name in head.parts if name.startswith("libtorch/")]
    else:
        try:
            names = [f"simple/{parse_wheel_filename(file)[0]}"]
        except InvalidWheelFilename:
            names = []
    return [name for name in names if name in head.parts]
