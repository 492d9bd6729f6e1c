"""Correct the records of conda packages in a channel, without changing the packages."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from torchyard.index.conda.repodata import repodata_pages
from torchyard.index.conda.section import CondaSection
from torchyard.index.entry import Entry, State
from torchyard.publish.channel.channel import Channel
from torchyard.publish.channel.draft import ChangeReason, Edit
from torchyard.publish.channel.head import Head
from torchyard.publish.channel.layout import PartName, parse_part

Correct = Callable[[PartName, Entry], Entry]
"""Returns a corrected entry of a part."""


class Corrected(NamedTuple):
    """A file of a part, before and after a change."""

    part: str
    before: Entry
    after: Entry


def conda_parts(head: Head) -> list[str]:
    """Return the parts of a channel that are subdirs of conda."""
    return [name for name in head.parts if parse_part(name).section == CondaSection.NAME]


def corrected_state(name: str, state: State, correct: Correct) -> State:
    """Return the state of a part with corrected entries; yanks follow changed requirements."""
    part = parse_part(name)
    entries = part.rules.follow_yanks(tuple(correct(part, entry) for entry in state.entries))
    return replace(state, entries=entries) if entries != state.entries else state


def differences(name: str, before: State, after: State) -> Iterator[Corrected]:
    """Yield the files of a part that a correction changed."""
    for old, new in zip(before.entries, after.entries, strict=True):
        if old != new:
            yield Corrected(name, old, new)


def write_channel(folder: Path, states: Mapping[str, State]) -> str:
    """Write the indexes of subdirs into a directory, for solvers; return its address."""
    for name, state in states.items():
        for page in repodata_pages(parse_part(name).name, state):
            path = folder / page.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(page.data)
    return (folder / CondaSection.NAME).absolute().as_uri()


def patch(channel: Channel, correct: Correct, reason: ChangeReason) -> tuple[Head, list[Corrected]]:
    """Correct the records of a channel; return the changed files."""
    changed: dict[str, list[Corrected]] = {}

    def edit_of(name: str) -> Edit:
        def edit(state: State) -> State:
            new = corrected_state(name, state, correct)
            changed[name] = list(differences(name, state, new))
            return new

        return edit

    parts = conda_parts(channel.head())
    head = channel.commit({name: edit_of(name) for name in parts}, reason)
    return head, [file for name in parts for file in changed[name]]
