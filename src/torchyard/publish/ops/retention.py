"""Select outdated files of a channel."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple

from packaging.utils import canonicalize_name

from torchyard.index.entry import Entry
from torchyard.index.sort_keys import version_key
from torchyard.model.matrix import any_match
from torchyard.publish.channel.head import Pin
from torchyard.publish.channel.layout import PartName
from torchyard.publish.select import project_of, public


class Keep(NamedTuple):
    """What to keep: the newest versions of each project, and files uploaded since a moment.

    The newest version is always kept. Yanked versions are kept while among the newest, but do not
    count. Without limits, all are kept.
    """

    versions: int = 0
    since: str = ""
    projects: tuple[str, ...] = ()
    """Globs over normalised names; other projects are not changed."""
    grace: timedelta = timedelta(days=7)
    """How long hidden files and leftovers of killed writers stay."""


def outdated(
    part: PartName, entries: Iterable[Entry], keep: Keep, pins: Iterable[Pin]
) -> list[Entry]:
    """Return files of old, unpinned versions, in all variants together."""
    if not keep.versions and not keep.since:
        return []
    found: dict[str, dict[str, list[Entry]]] = {}
    for entry in entries:
        versions = found.setdefault(project_of(part, entry), {})
        versions.setdefault(public(entry.version), []).append(entry)
    kept = pinned_files(pins)
    return [
        entry
        for project, versions in found.items()
        if not keep.projects or any_match(canonicalize_name(project), keep.projects)
        for version in _old(versions, max(1, keep.versions))
        if (project, version) not in kept and not _is_new(versions[version], keep.since)
        for entry in versions[version]
    ]


def _old(versions: Mapping[str, Iterable[Entry]], number: int) -> list[str]:
    """Return all versions except the newest; yanked ones do not count."""
    ranked = sorted(versions, key=version_key)
    good = [
        rank
        for rank, version in enumerate(ranked)
        if any(entry.yanked is None for entry in versions[version])
    ]
    return ranked[: min([*good[-number:], max(0, len(ranked) - number)])]


def _is_new(entries: Iterable[Entry], since: str) -> bool:
    return bool(since) and any(entry.uploaded >= since for entry in entries)


def pinned_files(pins: Iterable[Pin]) -> set[tuple[str, str]]:
    """Return the projects and versions of all pins."""
    return {(name, v) for pin in pins for name, vs in pin.projects.items() for v in vs}
