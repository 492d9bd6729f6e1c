"""Packages of a conda channel that can't be installed without ones that were yanked."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from torchyard.index.conda.record import conda_record
from torchyard.index.entry import Entry

_EXACT = re.compile(r"(?P<name>\S+) ==(?P<version>[^\s,|]+)(?: (?P<build>\S+))?")
_FOLLOWS = "requires "
"""The beginning of the reason of a package that was yanked because another one was."""


def follow_yanks(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Yank packages that require yanked ones exactly, and offer them again once those are.

    A requirement of one version, maybe with a glob for its build, counts as fulfilled while the
    channel offers any package for it. Solvers could not install the others, but would list them.
    """
    followed = tuple(entries)
    while True:
        before, offered = followed, _by_name(followed, yanked=False)
        gone = _by_name(followed, yanked=True)
        followed = tuple(_settled(entry, offered, gone) for entry in before)
        if followed == before:
            return followed


_Names = dict[str, list[Entry]]


def _by_name(entries: Sequence[Entry], *, yanked: bool) -> _Names:
    found: _Names = {}
    for entry in entries:
        if (entry.yanked is not None) is yanked:
            found.setdefault(conda_record(entry).name, []).append(entry)
    return found


def _settled(entry: Entry, offered: _Names, gone: _Names) -> Entry:
    missing = next(_missing(entry, offered, gone), None)
    if missing is not None and entry.yanked is None:
        return replace(entry, yanked=f"{_FOLLOWS}{missing.file}, which was yanked")
    if missing is None and entry.yanked is not None and entry.yanked.startswith(_FOLLOWS):
        return replace(entry, yanked=None)
    return entry


def _missing(entry: Entry, offered: _Names, gone: _Names) -> Iterator[Entry]:
    """Yield yanked packages that fulfilled a requirement which no offered one does."""
    for depend in conda_record(entry).depends:
        exact = _EXACT.fullmatch(depend)
        if exact and not any(_fulfils(exact, other) for other in offered.get(exact["name"], ())):
            yield from (other for other in gone.get(exact["name"], ()) if _fulfils(exact, other))


def _fulfils(exact: re.Match[str], other: Entry) -> bool:
    build = conda_record(other).build
    return other.version == exact["version"] and fnmatchcase(build, exact["build"] or "*")
