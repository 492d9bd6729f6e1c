"""Compare the cells of a plan with a channel: published, missing and additional ones."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from packaging.utils import canonicalize_name

from torchyard.index.entry import Entry
from torchyard.index.sections import section_of
from torchyard.index.sort_keys import version_key
from torchyard.model.identifier import Cell, parse
from torchyard.package.versions import public_version
from torchyard.publish.channel.reader import ChannelReader


class Presence(StrEnum):
    """The state of a cell in a channel."""

    THERE = "there"
    MISSING = "missing"
    YANKED = "yanked"
    UNPLANNED = "unplanned"


class Coverage(NamedTuple):
    """All planned or published cells of a version of a project."""

    project: str
    version: str
    cells: dict[Cell, Presence]
    """The plan's packages, in its order; then unplanned packages."""
    versions: tuple[str, ...]
    """All versions of the project in the channel, without local parts, the newest first."""

    def those(self, presence: Presence) -> list[Cell]:
        return [cell for cell, found in self.cells.items() if found is presence]


def find_coverage(
    channel: ChannelReader, project: str, version: str, planned: Iterable[Cell]
) -> Coverage:
    """Compare a plan with a channel's packages of a version, without its local part."""
    found: dict[str, dict[Cell, bool]] = {}
    wanted = canonicalize_name(project)
    head = channel.head()
    for part in head.parts:
        if not section_of(part).MANY_PROJECTS and part.partition("/")[2] != wanted:
            continue
        for entry in channel.state(head, part).entries:
            cell = _cell(entry, wanted)
            if cell is not None:
                yanked = found.setdefault(public_version(entry.version), {})
                yanked[cell] = yanked.get(cell, True) and entry.yanked is not None
    there = found.get(public_version(version), {})
    cells = {cell: _presence(there.get(cell)) for cell in planned}
    cells.update((cell, Presence.UNPLANNED) for cell in sorted(there) if cell not in cells)
    versions = tuple(sorted(found, key=version_key, reverse=True))
    return Coverage(project, version, cells, versions)


def _presence(yanked: bool | None) -> Presence:  # noqa: FBT001 - None: there is no file
    if yanked is None:
        return Presence.MISSING
    return Presence.YANKED if yanked else Presence.THERE


def _cell(entry: Entry, project: str) -> Cell | None:
    """Return the cell of a file of the project, or None."""
    if not entry.cell:
        return None
    identifier = parse(entry.cell)
    name, _, _ = identifier.label.rpartition("-")
    return Cell.from_path(identifier.path) if canonicalize_name(name) == project else None
