"""Which files each index of a channel shows: of everything, of a variant, of a torch and a variant.

`simple/` has all files and `cu130/` those of a variant. Extensions are compiled against one release
of torch, which a version's local part can't tell to installers: they would take the highest. So
`torch-2.13+cu130/` has what `cu130/` has, without what requires another torch. There is such an
index for each release that some file is compiled against.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from torchyard.index.entry import SHARED, WHOLE, Entry, State

_TORCH = "torch-"
_LAST_PATCH = 99


FileKind = tuple[str, str]
"""What decides in which views a file is: its variant, and the versions of torch that it needs."""

kind_of: Callable[[Entry], FileKind] = attrgetter("variant", "torch")


class View(NamedTuple):
    """An index: of a variant, and unless it is empty, of a torch release such as `2.13`."""

    variant: str
    torch: str = ""

    @classmethod
    def parse(cls, name: str) -> "View":
        """Read the name of an index's folder."""
        if not name.startswith(_TORCH):
            return cls(name)
        torch, _, variant = name.removeprefix(_TORCH).partition("+")
        return cls(variant, torch)

    def __str__(self) -> str:
        return f"{_TORCH}{self.torch}+{self.variant}" if self.torch else self.variant

    def shows(self, kind: FileKind) -> bool:
        """Return whether a file of this kind is in the index; one without a variant is in all."""
        variant, torch = kind
        if variant == SHARED:
            return True
        is_other = self.torch and torch and not admits_torch(torch, self.torch)
        return variant == self.variant and not is_other


def kinds_of(entries: Iterable[Entry]) -> set[FileKind]:
    """Return the kinds of many files, which are few."""
    return set(map(kind_of, entries))


def home_of(kind: FileKind) -> View:
    """Return the smallest index that a file is in; `View("")` if it is in all."""
    variant, torch = kind
    return view_for(variant, torch_label(torch))


def view_for(variant: str, torch: str) -> View:
    """Return the smallest index with files of a variant, for a torch as `torch_label` names it."""
    return View(variant, torch if variant and torch[:1].isdecimal() else "")


def views_made_by(kinds: Iterable[FileKind]) -> set[str]:
    """Return the indexes that exist because there are files of these kinds, besides `WHOLE`."""
    homes = {home_of(kind) for kind in kinds}
    return {str(one) for home in homes for one in (home, View(home.variant))} - {SHARED}


def in_view(state: State, view: str) -> list[Entry]:
    """Return the entries that a view shows: in `WHOLE`, the first of those with the same name."""
    if view == WHOLE:
        return list({entry.file: entry for entry in reversed(state.entries)}.values())[::-1]
    shown = set(filter(View.parse(view).shows, kinds_of(state.entries)))
    return [entry for entry in state.entries if kind_of(entry) in shown]


def torch_label(requirement: str) -> str:
    """Return what is shown of versions of torch: the release, or all of them as `>=2.10`."""
    return torch_release(requirement) or requirement


@lru_cache
def torch_release(requirement: str) -> str:
    """Return the one release of torch that versions such as `==2.13.*` allow, as `2.13`, or ""."""
    for release in sorted(_releases(requirement)):
        major, minor = map(int, release.split("."))
        others = (f"{major}.{minor + 1}", f"{major}.{max(minor - 1, 0)}", f"{major + 1}.0")
        is_one = not any(admits_torch(requirement, o) for o in others if o != release)
        if is_one and admits_torch(requirement, release):
            return release
    return ""


@lru_cache
def admits_torch(requirement: str, torch: str) -> bool:
    """Return whether versions such as `==2.13.*` allow a torch: a version, or any of a release."""
    try:
        wanted = SpecifierSet(requirement)
        version = Version(torch)
    except (InvalidSpecifier, InvalidVersion):
        return True
    versions = {torch}
    if len(version.release) == len(("major", "minor")):
        versions = {f"{torch}.0", f"{torch}.{_LAST_PATCH}"}
        named = (one.version.removesuffix(".*") for one in wanted)
        versions |= {one for one in named if one.startswith(f"{torch}.")}
    return any(wanted.contains(one, prereleases=True) for one in versions)


def _releases(requirement: str) -> set[str]:
    """Return the releases that a requirement names."""
    try:
        named = [Version(one.version.removesuffix(".*")) for one in SpecifierSet(requirement)]
    except (InvalidSpecifier, InvalidVersion):
        return set()
    return {f"{one.major}.{one.minor}" for one in named}
