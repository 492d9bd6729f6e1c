"""The files of a project in this machine's indexes and directories."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from torchyard.host.fetcher import Fetcher, directory_url
from torchyard.index.simple.read import ACCEPT_HTML, ACCEPT_JSON, FileLink, read_listing

_ACCEPT = f"{ACCEPT_JSON}, {ACCEPT_HTML}"


class ListedWheel(NamedTuple):
    """A wheel in an index."""

    version: Version
    tags: frozenset[Tag]
    url: str


def files_in_index(index: str, project: str) -> tuple[FileLink, ...]:
    """Return the files of a project in an index; empty if the index lacks the project."""
    url = directory_url(index)
    page = Fetcher(url).get(f"{url}{canonicalize_name(project)}/", _ACCEPT)
    return read_listing(page.data, page.url, page.media).files if page.found else ()


def list_wheels(
    project: str, indexes: Iterable[str], links: Iterable[str] = ()
) -> list[ListedWheel]:
    """Return the wheels of a project, without yanked ones.

    Args:
        project: Its name.
        indexes: Addresses of indexes.
        links: Directories with files, and addresses of pages with links to files.
    """
    found = [link for index in indexes for link in files_in_index(index, project)]
    found += [link for link_page in links for link in _linked(link_page)]
    return [wheel for link in found if (wheel := listed_wheel(link, canonicalize_name(project)))]


def _linked(url: str) -> Iterator[FileLink]:
    if url.startswith(("https://", "http://")):
        page = Fetcher(url).get(url, _ACCEPT)
        yield from read_listing(page.data, page.url, page.media).files if page.found else ()
        return
    for path in sorted(Path(unquote(url.removeprefix("file://"))).glob("*.whl")):
        yield FileLink(file=path.name, url=path.absolute().as_uri())


def listed_wheel(link: FileLink, project: str) -> ListedWheel | None:
    """Return a file as a wheel of a project; None if it is another file, or yanked."""
    try:
        name, version, _, tags = parse_wheel_filename(link.file)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    return ListedWheel(version, tags, link.url) if name == project and link.yanked is None else None
