"""What a section of a channel is: the pages and files of one sort of package.

Each section is a class that satisfies `ChannelSection`, listed in `torchyard.index.sections`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from torchyard.index.entry import Entry, State
from torchyard.index.page import Page
from torchyard.package.contents import Contents

ANY_PLATFORM = "any"
"""Stands in a platform's place for files that fit all of them."""


class Fit(NamedTuple):
    """What one file is for. No Python: any."""

    platform: str
    python: str = ""


class InstallSource(NamedTuple):
    """Where installers get a published file: the name they ask for, and an index or an address."""

    name: str
    url: str
    build: str = ""
    subdir: str = ""


class Staged(NamedTuple):
    """A package as a section publishes it."""

    part: str
    """The part it goes to, without the section's name."""
    entry: Entry
    name: str
    """As others require it: normalised for a wheel, as it is for a conda package."""
    requires: tuple[str, ...] = ()
    """The names of all that it requires, also by its extras; virtual conda packages aside.

    A requirement with an address is named with it: `demo @ https://…`, `conda-forge::demo`.
    """
    metadata: bytes = b""
    """The METADATA that is published beside a wheel."""


class LandingRow(NamedTuple):
    """A package in one section and variant, whatever its version; in the order of the page."""

    project: str
    place: int
    section: str
    name: str
    variant: str
    build: str = ""


class ChannelSection(Protocol):
    """A section of a channel."""

    NAME: str
    """The folder of its pages, and the first word of the names of its parts."""
    FORMAT: str
    """The format of its packages."""
    PACKAGE: str
    """What `torchyard which` calls one of its files."""
    TITLE: str
    """What the landing page calls its files."""
    INDEX_PER_VARIANT: bool
    """Whether each variant of the channel has an index of its own."""
    MANY_PROJECTS: bool
    """Whether a part has the files of many projects."""
    HAS_VARIANTS: bool
    """Whether files of one name may be there in several variants."""
    KEYED_BY_NAME: bool
    """Whether files lie in its own folder by their names, not in `packages/` by their digests."""
    HAS_PROVENANCE: bool
    """Whether a provenance (PEP 740) may lie beside a file."""
    FIRST_PART: str
    """The part that every channel with this section has, and that is published first, or ""."""

    def project(self, part: str, entry: Entry, /) -> str:
        """Return the project of a file."""

    def files_of(self, state: State, project: str, /) -> Sequence[Entry]:
        """Return the files of one project."""

    def key(self, part: str, entry: Entry, /) -> str:
        """Return where the bytes of a file are."""

    def upload_key(self, key: str, digest: str, /) -> str:
        """Return where a large file is sent to first: its key, if that belongs to its bytes."""

    def part_of_key(self, key: str, parts: Iterable[str], /) -> str | None:
        """Return the part that would hold an object that never changes, or None if it is not here.

        `parts` are those that there are.
        """

    def fixed_keys(self, part: str, state: State, /) -> Iterator[str]:
        """Yield the keys of objects of a state that are neither packages nor pages."""

    def settle(
        self, part: str, state: State, touched: Iterable[Entry], /
    ) -> tuple[State, list[Page]]:
        """Return the state with what it needs beside entries, and new objects that never change."""

    def pages(self, part: str, state: State, views: Iterable[str], /) -> Iterator[Page]:
        """Yield the pages of a part in some views; the last one changes with all others."""

    def root_pages(
        self, listings: Mapping[str, Sequence[str]], serials: Mapping[str, int], /
    ) -> Iterator[Page]:
        """Yield the pages that list the parts of each view."""

    def fits(self, part: str, entry: Entry, /) -> Iterator[Fit]:
        """Yield what a file that was built elsewhere is for, by its name."""

    def build_glob(self, entry: Entry, /) -> str:
        """Return a glob over the build strings of a file's variant, or ""."""

    def stage(
        self, path: Path, contents: Contents, entry: Entry, md5: str, project: str, /
    ) -> Staged:
        """Return a package as it is to be published; `project` is empty if it says none.

        Raises PublishError if the channel can't have it.
        """

    def requires(self, entry: Entry, metadata: bytes, /) -> tuple[str, ...]:
        """Return the names of all that a published file requires."""

    def source(self, part: str, entry: Entry, address: str, /) -> InstallSource:
        """Return where installers get a file of a channel at an address."""

    def commands(self, project: str, entry: Entry, address: str, /) -> dict[str, str]:
        """Return the commands that install a file, by program."""

    def page_of(self, row: LandingRow, /) -> str:
        """Return the path of the page for a row of the landing page, or ""."""

    def examples(
        self, project: str, rows: Sequence[LandingRow], here: str, /
    ) -> Iterator[tuple[str, str]]:
        """Yield titles and commands, as HTML, for the landing page; `here` is the address."""


def shell_quoted(word: str) -> str:
    """A word as shells read it; `shlex.quote` would leave most of these without quotes."""
    return "'" + word.replace("'", "'\\''") + "'"
