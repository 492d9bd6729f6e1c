"""The pages of a project, compared with each other and with the standards."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchyard.checks.rules import index as rules
from torchyard.host.http import redact_url
from torchyard.index.entry import Status
from torchyard.index.filename import SDISTS, read_name
from torchyard.index.simple.read import FileLink, Listing
from torchyard.model.values import Value
from torchyard.package.wheel.name import is_wheel_name
from torchyard.publish.index_check.files import ResolverMetadata
from torchyard.publish.index_check.findings import IndexHit

_ABSOLUTE = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*:)?//")
_SIZED = (1, 1)
"""The first API whose pages list versions and sizes (PEP 700)."""


class Pages(Value, kw_only=True):
    """The existing pages of a project."""

    name: str
    url: str
    html: Listing | None = None
    json: Listing | None = None

    @property
    def files(self) -> tuple[FileLink, ...]:
        """The files listed by JSON if it exists, or else by HTML."""
        readable = (page for page in (self.json, self.html) if page is not None and page.readable)
        return next((page.files for page in readable), ())


def page_hits(pages: Pages) -> Iterator[IndexHit]:
    """Yield the faults of the pages, without requesting files."""
    where = redact_url(pages.url)
    if pages.html is None and pages.json is None:
        yield IndexHit(rules.PAGE, where, "there is no page")
    for listing in filter(None, (pages.html, pages.json)):
        rule = rules.HTML if listing.kind == "html" else rules.PAGE
        yield from (IndexHit(rule, where, f"{listing.kind}: {fault}") for fault in listing.faults)
        yield from _api_hits(listing, pages.name, where)
        yield from _status_hits(listing, where)
    if pages.html is not None and pages.json is not None and pages.json.readable:
        for what in sorted(_differences(pages.html.files, pages.json.files)):
            yield IndexHit(rules.DIFFER, where, what)
    yield from _name_hits(pages, where)
    yield from _link_hits(pages, where)


def _api_hits(listing: Listing, project: str, where: str) -> Iterator[IndexHit]:
    if not listing.api:
        return  # HTML without a version is of the first
    try:
        major, minor = map(int, listing.api.split("."))
    except ValueError:
        yield IndexHit(rules.VERSION, where, f"`{listing.api}` is no API version")
        return
    if major != 1:
        yield IndexHit(rules.VERSION, where, f"the API version {listing.api} is unknown")
    elif listing.kind == "json" and (major, minor) >= _SIZED:
        yield from _sized_hits(listing, project, where)


def _status_hits(listing: Listing, where: str) -> Iterator[IndexHit]:
    """Check the status of the project (PEP 792)."""
    if listing.status not in ("", *get_args(Status)):
        what = f"the status `{listing.status}` is unknown"
        yield IndexHit(rules.VERSION, where, f"{listing.kind}: {what}")
    if listing.status == "quarantined" and listing.files:
        what = "the project is in quarantine, but its files are offered"
        yield IndexHit(rules.VERSION, where, f"{listing.kind}: {what}")


def _sized_hits(listing: Listing, project: str, where: str) -> Iterator[IndexHit]:
    """Check the requirements of API 1.1: sizes, and a list of all versions."""
    if listing.versions is None:
        yield IndexHit(rules.VERSION, where, "API 1.1 and later list `versions`")
    listed = {_version(text) for text in listing.versions or ()}
    for link in listing.files:
        if link.size is None:
            yield IndexHit(rules.VERSION, link.file, "API 1.1 and later list sizes")
        version = _version_of(link.file, project)
        if listing.versions is not None and version and version not in listed:
            what = f"its version {version} is not in the page's list"
            yield IndexHit(rules.VERSION, link.file, what)


def _version(text: str) -> Version | str:
    try:
        return Version(text)
    except InvalidVersion:
        return text


def _differences(html: Iterable[FileLink], json: Iterable[FileLink]) -> Iterator[str]:
    ours, theirs = ({link.file: link for link in links} for links in (html, json))
    for file in ours.keys() - theirs.keys():
        yield f"only HTML has {file}"
    for file in theirs.keys() - ours.keys():
        yield f"only JSON has {file}"
    for file in ours.keys() & theirs.keys():
        fields = _differing(ours[file], theirs[file])
        if fields:
            yield f"{file} has another {', '.join(fields)} in JSON than in HTML"


def _differing(html: FileLink, json: FileLink) -> list[str]:
    """Return the differing fields; HTML has at most one hash per file."""
    pairs: dict[str, tuple[object, object]] = {
        "address": (html.url, json.url),
        "hash": _both(html.hashes, json.hashes),
        "requires-python": (html.requires_python, json.requires_python),
        "core-metadata": _both(html.metadata or {}, json.metadata or {}),
        "yanked": (html.yanked, json.yanked),
    }
    return [name for name, (pair, other) in pairs.items() if pair != other]


def _both(mine: Mapping[str, str], other: Mapping[str, str]) -> tuple[object, object]:
    """Return two sets of hashes, restricted to common algorithms."""
    kinds = mine.keys() & other.keys()
    return {kind: mine[kind] for kind in kinds}, {kind: other[kind] for kind in kinds}


def _version_of(file: str, project: str) -> Version | None:
    """Return the version in a file's name, or None."""
    try:
        return read_name(file, project).version
    except ValueError:
        return None


def _name_hits(pages: Pages, where: str) -> Iterator[IndexHit]:
    name = canonicalize_name(pages.name)
    if name != pages.name:
        yield IndexHit(rules.NAME, where, f"its address should end in `{name}/`")
    if (
        pages.json is not None
        and pages.json.readable
        and canonicalize_name(pages.json.name) != name
    ):
        what = f"the page is that of `{pages.json.name}`"
        yield IndexHit(rules.NAME, where, what)
    for link in pages.files:
        if not is_wheel_name(link.file) and not link.file.endswith(SDISTS):
            continue
        try:
            project = read_name(link.file, name).project
        except ValueError as error:
            yield IndexHit(rules.NAME, link.file, f"installers can't read its name: {error}")
            continue
        if project != name:
            what = f"it is a file of `{project}`, on the page of `{name}`"
            yield IndexHit(rules.NAME, link.file, what)


def _link_hits(pages: Pages, where: str) -> Iterator[IndexHit]:
    files = pages.files
    absolute = sum(_ABSOLUTE.match(link.written) is not None for link in files)
    if absolute:
        what = f"{absolute} of {len(files)} links are absolute"
        yield IndexHit(rules.ABSOLUTE_LINK, where, what)
    bare = [link for link in files if is_wheel_name(link.file) and link.metadata is None]
    if bare:
        what = f"{len(bare)} of {len(files)} files are wheels without a sidecar"
        yield IndexHit(rules.SIDECAR_NONE, where, what)
    total, taken = (
        Counter(version for link in chosen if (version := _version_of(link.file, pages.name)))
        for chosen in (files, [link for link in files if link.yanked is not None])
    )
    for version, number in taken.items():
        if number != total[version]:
            what = f"of version {version}, {number} of {total[version]} files are yanked"
            yield IndexHit(rules.YANKED, where, what)


def metadata_hits(facts: Mapping[str, ResolverMetadata]) -> Iterator[IndexHit]:
    """Compare the wheels of each version; report wheels that differ from the majority."""
    groups: dict[Version | None, dict[str, ResolverMetadata]] = {}
    for file, fact in facts.items():
        groups.setdefault(_version_of(file, ""), {})[file] = fact
    for group in groups.values():
        usual, _ = Counter(group.values()).most_common(1)[0]
        model = next(file for file, fact in group.items() if fact == usual)
        for file, fact in group.items():
            if fact != usual:
                fields = zip(
                    ("Requires-Dist", "Requires-Python", "Provides-Extra"), fact, usual, strict=True
                )
                names = ", ".join(name for name, field, other in fields if field != other)
                what = f"METADATA is not that of {model}: it differs in {names}"
                yield IndexHit(rules.METADATA_DIFFERS, file, what)
