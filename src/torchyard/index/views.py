"""Which files each index of a channel shows: all, or those of a variant, or of a torch and variant.

`simple/` has all files and `cu130/` those of a variant. Extensions are compiled against one release
of torch, which the local version can't express: installers would take the highest version. So
`torch-2.13+cu130/` has the files of `cu130/` that accept torch 2.13. There is such an
index for each release that a file is compiled against.
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
"""What determines a file's views: its variant, and the versions of torch that it requires."""

kind_of: Callable[[Entry], FileKind] = attrgetter("variant", "torch")


class View(NamedTuple):
    """An index of a variant; `torch`, if not empty, limits it to a release such as `2.13`."""

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
        """Return whether the index has files of this kind; files without a variant are in all."""
        variant, torch = kind
        if variant == SHARED:
            return True
        is_other = self.torch and torch and not admits_torch(torch, self.torch)
        return variant == self.variant and not is_other


def kinds_of(entries: Iterable[Entry]) -> set[FileKind]:
    """Return the distinct kinds of files."""
    return set(map(kind_of, entries))


def home_of(kind: FileKind) -> View:
    """Return the smallest index that has a file; `View("")` if all have it."""
    variant, torch = kind
    return view_for(variant, torch_label(torch))


def view_for(variant: str, torch: str) -> View:
    """Return the smallest index with files of a variant for a torch, named by `torch_label`."""
    return View(variant, torch if variant and torch[:1].isdecimal() else "")


def views_made_by(kinds: Iterable[FileKind]) -> set[str]:
    """Return the indexes that files of these kinds require, besides `WHOLE`."""
    homes = {home_of(kind) for kind in kinds}
    return {str(view) for home in homes for view in (home, View(home.variant))} - {SHARED}


def in_view(state: State, view: str) -> list[Entry]:
    """Return the entries that a view shows; in `WHOLE`, the first of several with the same name."""
    if view == WHOLE:
        return list({entry.file: entry for entry in reversed(state.entries)}.values())[::-1]
    shown = set(filter(View.parse(view).shows, kinds_of(state.entries)))
    return [entry for entry in state.entries if kind_of(entry) in shown]


def torch_label(requirement: str) -> str:
    """Return the display name of torch versions: one release, or a range such as `>=2.10`."""
    return torch_release(requirement) or requirement


@lru_cache
def torch_release(requirement: str) -> str:
    """Return the one release, as `2.13`, that versions such as `==2.13.*` allow, or ""."""
    for release in sorted(_releases(requirement)):
        major, minor = map(int, release.split("."))
        others = (f"{major}.{minor + 1}", f"{major}.{max(minor - 1, 0)}", f"{major + 1}.0")
        is_one = not any(admits_torch(requirement, o) for o in others if o != release)
        if is_one and admits_torch(requirement, release):
            return release
    return ""


@lru_cache
def admits_torch(requirement: str, torch: str) -> bool:
    """Return whether versions such as `==2.13.*` allow a version of torch, or any of a release."""
    try:
        wanted = SpecifierSet(requirement)
        version = Version(torch)
    except (InvalidSpecifier, InvalidVersion):
        return True
    versions = {torch}
    if len(version.release) == len(("major", "minor")):
        versions = {f"{torch}.0", f"{torch}.{_LAST_PATCH}"}
        named = (clause.version.removesuffix(".*") for clause in wanted)
        versions |= {release for release in named if release.startswith(f"{torch}.")}
    return any(wanted.contains(candidate, prereleases=True) for candidate in versions)


def _releases(requirement: str) -> set[str]:
    """Return the releases that a requirement names."""
    try:
        named = [Version(clause.version.removesuffix(".*")) for clause in SpecifierSet(requirement)]
    except (InvalidSpecifier, InvalidVersion):
        return set()
    return {f"{release.major}.{release.minor}" for release in named}
