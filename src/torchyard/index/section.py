"""The interface of a channel section: the pages and files of one package format.

Each section is a class that satisfies `ChannelSection`, listed in `torchyard.index.sections`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from torchyard.index.entry import Entry, State, package_key
from torchyard.index.page import Page
from torchyard.package.contents import Contents

ANY_PLATFORM = "any"
"""The platform of files that fit all of them."""


Elsewhere = tuple[str, ...] | None
"""The indexes with requirements from outside the channel; empty for the installer's default
index, None if packages require nothing from outside.

`{compute}` in an address stands for the compute of the package: torch has an index for each."""

COMPUTE = "{compute}"


class Fit(NamedTuple):
    """A platform and Python that a file fits. An empty Python means any."""

    platform: str
    python: str = ""


class InstallSource(NamedTuple):
    """Where installers get a published file: its package, and an index or an address."""

    name: str
    url: str
    build: str = ""
    subdir: str = ""


class Staged(NamedTuple):
    """A package as a section publishes it."""

    part: str
    """The part that receives it, without the section's name."""
    entry: Entry
    name: str
    """The name by which others require it: normalised for a wheel, unchanged for conda."""
    requires: tuple[str, ...] = ()
    """The names of all requirements, extras included; virtual conda packages are left out.

    A requirement with an address keeps it: `demo @ https://…`, `conda-forge::demo`.
    """
    metadata: bytes = b""
    """The METADATA that is published with a wheel."""


class LandingRow(NamedTuple):
    """A package in one section and variant, in any version; rows sort in the order of the page."""

    project: str
    position: int
    section: str
    name: str
    variant: str
    build: str = ""
    torch: str = ""
    """The release of torch that it is compiled against, or the versions it requires."""

    @property
    def title(self) -> str:
        """The name of the row."""
        torch = f"torch {self.torch}" if self.torch else ""
        return ", ".join(filter(None, (torch, self.variant))) or "any"


class ChannelSection(Protocol):
    """A section of a channel."""

    NAME: str
    """The folder of its pages, and the first word of its parts' names."""
    FORMAT: str
    """The format of its packages."""
    PACKAGE: str
    """The name of its files in `torchyard which`."""
    TITLE: str
    """The heading of its files on the landing page."""
    INDEX_PER_VARIANT: bool
    """Whether each variant of the channel has an index of its own."""
    MANY_PROJECTS: bool
    """Whether a part has the files of many projects."""
    HAS_VARIANTS: bool
    """Whether files of the same name may exist in several variants."""
    KEYED_BY_NAME: bool
    """Whether files are stored in its own folder by name, not in `packages/` by digest."""
    IGNORES_DRIVERS: bool
    """Whether installers ignore by how much a driver is newer than required."""
    HAS_PROVENANCE: bool
    """Whether files may have a provenance (PEP 740)."""
    FIRST_PART: str
    """The part that every channel with this section has and that is published first, or ""."""

    def project(self, part: str, entry: Entry, /) -> str:
        """Return the project of a file."""

    def files_of(self, state: State, project: str, /) -> Sequence[Entry]:
        """Return the files of one project."""

    def key(self, part: str, entry: Entry, /) -> str:
        """Return the key of a file's bytes."""

    def upload_key(self, key: str, digest: str, /) -> str:
        """Return the key for uploading a large file; its own key if that depends on the digest."""

    def part_of_key(self, key: str, parts: Iterable[str], /) -> str | None:
        """Return the part of an immutable object, or None if it belongs to another section.

        `parts` are the existing ones.
        """

    def follow_yanks(self, entries: Sequence[Entry], /) -> tuple[Entry, ...]:
        """Return a part's entries, those yanked too that can't be installed without yanked ones."""

    def fixed_keys(self, part: str, state: State, /) -> Iterator[str]:
        """Yield the keys of objects of a state that are neither packages nor pages."""

    def settle(
        self, part: str, state: State, touched: Iterable[Entry], /
    ) -> tuple[State, list[Page]]:
        """Return the state with derived data added, and the new immutable objects."""

    def pages(self, part: str, state: State, views: Iterable[str], /) -> Iterator[Page]:
        """Yield the pages of a part in some views; the last one changes whenever any other does."""

    def root_pages(
        self, listings: Mapping[str, Sequence[str]], serials: Mapping[str, int], /
    ) -> Iterator[Page]:
        """Yield the pages that list the parts of each view."""

    def fits(self, part: str, entry: Entry, /) -> Iterator[Fit]:
        """Yield the platforms and Pythons in the name of a file that was built elsewhere."""

    def build_glob(self, entry: Entry, /) -> str:
        """Return a glob over the build strings of a file's variant, or ""."""

    def stage(
        self, path: Path, contents: Contents, entry: Entry, md5: str, project: str, /
    ) -> Staged:
        """Return a package ready for publication; `project` is empty if it has none.

        Raise PublishError if the channel can't take it.
        """

    def requires(self, entry: Entry, metadata: bytes, /) -> tuple[str, ...]:
        """Return the names of all requirements of a published file."""

    def source(self, part: str, entry: Entry, address: str, /) -> InstallSource:
        """Return where installers get a file of the channel at an address."""

    def commands(
        self, project: str, entry: Entry, address: str, elsewhere: Elsewhere, /
    ) -> dict[str, str]:
        """Return the commands that install a file, by program."""

    def page_of(self, row: LandingRow, /) -> str:
        """Return the path of the page for a row of the landing page, or ""."""

    def examples(
        self, project: str, rows: Sequence[LandingRow], here: str, elsewhere: Elsewhere, /
    ) -> Iterator[tuple[str, str]]:
        """Yield titles and commands, as HTML, for the landing page; `here` is its address."""


def indexes_for(variant: str, elsewhere: Elsewhere) -> Elsewhere:
    """Return the indexes for a variant; an address with `{compute}` needs a variant with one."""
    compute = variant.partition("-")[0]
    if elsewhere is None:
        return None
    return tuple(
        url.replace(COMPUTE, compute) for url in elsewhere if compute or COMPUTE not in url
    )


def shell_quoted(word: str) -> str:
    """Return a word in shell quotes; `shlex.quote` would leave most words unquoted."""
    return "'" + word.replace("'", "'\\''") + "'"


class ProjectSection:
    """The common base of sections whose parts are projects, with files in `packages/`."""

    MANY_PROJECTS = False
    HAS_VARIANTS = True
    KEYED_BY_NAME = False
    IGNORES_DRIVERS = False
    FIRST_PART = ""

    def project(self, part: str, _entry: Entry) -> str:
        return part

    def files_of(self, state: State, _project: str) -> Sequence[Entry]:
        return state.entries

    def key(self, _part: str, entry: Entry) -> str:
        return package_key(entry.sha256, entry.file)

    def upload_key(self, key: str, _digest: str) -> str:
        return key

    def follow_yanks(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        return tuple(entries)

    def fixed_keys(self, _part: str, _state: State) -> Iterator[str]:
        yield from ()

    def settle(
        self, _part: str, state: State, _touched: Iterable[Entry]
    ) -> tuple[State, list[Page]]:
        return state, []

    def build_glob(self, _entry: Entry) -> str:
        return ""
