"""libtorch zips in a channel: a listing for each project, and for each of its variants."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from packaging.utils import canonicalize_name

from torchyard.errors import PublishError
from torchyard.index.entry import WHOLE, Entry, State, package_key
from torchyard.index.libtorch.listing import listing_pages, root_page
from torchyard.index.libtorch.platform import zip_platform
from torchyard.index.page import Page
from torchyard.index.section import (
    Elsewhere,
    Fit,
    InstallSource,
    LandingRow,
    ProjectSection,
    Staged,
    shell_quoted,
)
from torchyard.index.views import in_view
from torchyard.package.contents import Contents
from torchyard.package.libtorch.format import LibtorchFormat


class LibtorchSection(ProjectSection):
    """libtorch zips."""

    NAME = "libtorch"
    FORMAT = LibtorchFormat.NAME
    PACKAGE = "libtorch"
    TITLE = "libtorch zips for C++"
    INDEX_PER_VARIANT = False
    HAS_PROVENANCE = False

    def part_of_key(self, key: str, parts: Iterable[str]) -> str | None:
        """Return the listing with the longest name that the file's name starts with."""
        folder, _, file = key.rpartition("/")
        if not folder.startswith("packages/") or not file.endswith(LibtorchFormat.SUFFIXES):
            return None
        stem = canonicalize_name(file).removeprefix("lib")
        return max((part for part in parts if stem.startswith(f"{part}-")), key=len, default="")

    def pages(self, part: str, state: State, views: Iterable[str]) -> Iterator[Page]:
        for view in views:
            shown = state.entries if view == WHOLE else in_view(state, view)
            yield from listing_pages(part, state, view, shown)

    def root_pages(
        self, listings: Mapping[str, Sequence[str]], _serials: Mapping[str, int]
    ) -> Iterator[Page]:
        """Yield one page, without a serial: parts are never removed, so no page recurs."""
        if listings[WHOLE]:
            yield root_page(listings[WHOLE])

    def fits(self, _part: str, entry: Entry) -> Iterator[Fit]:
        yield Fit(zip_platform(entry.file))

    def stage(
        self, path: Path, contents: Contents, entry: Entry, _md5: str, project: str
    ) -> Staged:
        name = canonicalize_name(
            project or LibtorchFormat().label(contents).name.removeprefix("lib")
        )
        if not name or not entry.version:
            msg = f"`{path.name}` is not named libNAME-VERSION.zip, as zips for C++ are"
            raise PublishError(msg, hint="rename it, or leave it out")
        return Staged(name, entry, name)

    def requires(self, _entry: Entry, _metadata: bytes) -> tuple[str, ...]:
        return ()

    def source(self, part: str, entry: Entry, address: str) -> InstallSource:
        return InstallSource(part, f"{address}/{quote(package_key(entry.sha256, entry.file))}")

    def commands(
        self, _project: str, entry: Entry, address: str, _elsewhere: Elsewhere
    ) -> dict[str, str]:
        key = quote(package_key(entry.sha256, entry.file))  # buckets read + as a space
        return {"curl": f"curl -L -o {shell_quoted(entry.file)} {shell_quoted(f'{address}/{key}')}"}

    def page_of(self, row: LandingRow) -> str:
        variant = f"{row.variant}/" if row.variant else ""
        return quote(f"{self.NAME}/{row.name}/{variant}index.html")

    def examples(
        self, _project: str, _rows: Sequence[LandingRow], _here: str, _elsewhere: Elsewhere
    ) -> Iterator[tuple[str, str]]:
        yield from ()
