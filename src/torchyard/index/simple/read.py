"""Reading the pages of any simple index: PEP 503 as HTML, PEP 691 as JSON.

Malformed pages never raise: their defects are listed in the listing's `faults`.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from html.parser import HTMLParser
from typing import Literal
from urllib.parse import unquote, urljoin, urlsplit

import msgspec
from packaging.utils import canonicalize_name

from torchyard.index.entry import is_file_name
from torchyard.model.values import UNDECODABLE, Value

ACCEPT_JSON = "application/vnd.pypi.simple.v1+json"
ACCEPT_HTML = "application/vnd.pypi.simple.v1+html, text/html;q=0.9"
HTML_MEDIA = ("text/html", "application/vnd.pypi.simple.v1+html")
_FILE = re.compile(r"\.(whl|tar\.gz|tar\.bz2|tar\.xz|tgz|zip|egg|exe|conda)\Z")
_DIGITS = re.compile(r"[0-9a-fA-F]+")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")


class FileLink(Value, kw_only=True):
    """A file listed on a page."""

    file: str
    url: str
    """Absolute, without a fragment."""
    written: str = ""
    """The address as written on the page."""
    hashes: dict[str, str] = {}
    requires_python: str = ""
    metadata: dict[str, str] | None = None
    """The hashes of its sidecar; None if the page does not announce one."""
    yanked: str | None = None
    size: int | None = None
    uploaded: str = ""
    provenance: str = ""
    """The absolute address of its attestations."""


class ListedProject(Value, kw_only=True):
    """A project in a list of projects."""

    name: str
    url: str


class Listing(Value, kw_only=True):
    """A page of a project, a list of projects, or a page that is neither."""

    kind: Literal["html", "json"]
    api: str = ""
    name: str = ""
    """The name of the project; HTML pages lack it."""
    files: tuple[FileLink, ...] = ()
    projects: tuple[ListedProject, ...] = ()
    versions: tuple[str, ...] | None = None
    status: str = ""
    faults: tuple[str, ...] = ()
    readable: bool = True


def read_listing(data: bytes, url: str, media: str) -> Listing:
    """Read a page in the format of the content type, else detected from its first bytes."""
    if media.endswith("json") or (not media and data.lstrip()[:1] == b"{"):
        return _read_json(data, url)
    return _read_html(data, url, media)


class _Anchor(Value, kw_only=True):
    attributes: dict[str, str | None]
    text: str


class _Parser(HTMLParser):
    """Collects the links, meta tags, base and doctype of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.is_html5 = False
        self.base = ""
        self.meta: dict[str, str] = {}
        self.anchors: list[_Anchor] = []
        self._open: dict[str, str | None] | None = None
        self._text: list[str] = []

    def handle_decl(self, decl: str) -> None:
        self.is_html5 |= decl.strip().lower().split() == ["doctype", "html"]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        match tag:
            case "a":
                self.end()
                self._open, self._text = found, []
            case "base" if not self.base:
                self.base = found.get("href") or ""
            case "meta" if found.get("name"):
                self.meta[str(found["name"])] = found.get("content") or ""
            case _:
                pass

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self.end()

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._text.append(data)

    def end(self) -> None:
        if self._open is not None:
            text = "".join(self._text).strip()
            self.anchors.append(_Anchor(attributes=self._open, text=text))
            self._open = None


def _read_html(data: bytes, url: str, media: str) -> Listing:
    faults = []
    if media and media not in HTML_MEDIA:
        faults.append(f"the server calls it {media}, not text/html")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        faults.append("it is not UTF-8 text")
        text = data.decode(errors="replace")
    parser = _parsed(text, faults)
    base = _join(url, parser.base, faults)
    files: list[FileLink] = []
    projects: list[ListedProject] = []
    for anchor in parser.anchors:
        href = anchor.attributes.get("href")
        if not href:
            faults.append(f"the link `{anchor.text[:99]}` leads nowhere")
        elif _FILE.search(unquote(_path(href))):
            _add(_html_file(anchor, href, base, faults), files, faults)
        elif not href.startswith(("#", "?")):
            target = _join(base, href, faults).partition("#")[0]
            if _is_project(anchor.text, target, base):
                projects.append(ListedProject(name=_last(target), url=target))
    return Listing(
        kind="html",
        api=parser.meta.get("pypi:repository-version", ""),
        files=tuple(files),
        projects=() if files else tuple(projects),
        status=parser.meta.get("pypi:project-status", ""),
        faults=tuple(faults),
    )


def _parsed(text: str, faults: list[str]) -> _Parser:
    """Parse a document as far as possible; closing the parser takes hours after an open tag."""
    parser = _Parser()
    try:
        parser.feed(text)
    except (AssertionError, ValueError, RecursionError) as error:
        faults.append(f"it can't be read to its end: {error}")
    parser.end()
    if "<" in parser.rawdata:
        faults.append("it ends within a tag")
    if not parser.is_html5:
        faults.append("it does not begin with <!DOCTYPE html>")
    return parser


def _html_file(anchor: _Anchor, href: str, base: str, faults: list[str]) -> FileLink:
    attributes = anchor.attributes
    target, _, fragment = _join(base, href, faults).partition("#")
    name = _last(target)
    if anchor.text != name:
        faults.append(f"the link to `{name}` is called `{anchor.text[:99]}`")
    metadata = attributes.get(
        "data-core-metadata", attributes.get("data-dist-info-metadata", "false")
    )
    provenance = attributes.get("data-provenance")
    return FileLink(
        file=name,
        url=target,
        written=href,
        hashes=_hashes(fragment),
        requires_python=attributes.get("data-requires-python") or "",
        metadata=None if metadata == "false" else _hashes(metadata or ""),
        yanked=(attributes["data-yanked"] or "") if "data-yanked" in attributes else None,
        provenance=_join(base, provenance, faults) if provenance else "",
    )


def _is_project(text: str, target: str, base: str) -> bool:
    """Return whether a link names a project; others are for navigation: home, help, up."""
    last = _last(target)
    is_called = canonicalize_name(text.rstrip("/")) == canonicalize_name(last)
    below = urljoin(base, ".")
    return bool(last) and (is_called or (target.startswith(below) and target != below))


def _hashes(text: str) -> dict[str, str]:
    """Return the hashes in a fragment, `sha256=…`, at any position."""
    found = (part.partition("=")[::2] for part in text.split("&"))
    return {kind.lower(): digest.lower() for kind, digest in found if _DIGITS.fullmatch(digest)}


class _Meta(Value, kw_only=True, forbid_unknown_fields=False):
    api: str = msgspec.field(name="api-version", default="")


class _Status(Value, kw_only=True, forbid_unknown_fields=False):
    status: str = ""


class _Row(Value, kw_only=True, forbid_unknown_fields=False):
    filename: str
    url: str
    hashes: dict[str, str] = {}
    requires_python: str | None = msgspec.field(name="requires-python", default=None)
    core: bool | dict[str, str] | None = msgspec.field(name="core-metadata", default=None)
    dist_info: bool | dict[str, str] | None = msgspec.field(name="dist-info-metadata", default=None)
    yanked: bool | str = False
    size: int | None = None
    uploaded: str | None = msgspec.field(name="upload-time", default=None)
    provenance: str | None = None


class _Name(Value, kw_only=True, forbid_unknown_fields=False):
    name: str


class _Json(Value, kw_only=True, forbid_unknown_fields=False):
    meta: _Meta = _Meta()
    name: str = ""
    files: tuple[msgspec.Raw, ...] = ()
    projects: tuple[_Name, ...] = ()
    versions: tuple[str, ...] | None = None
    status: _Status = msgspec.field(name="project-status", default=_Status())


_JSON = msgspec.json.Decoder(_Json)
_ROW = msgspec.json.Decoder(_Row)


def _read_json(data: bytes, url: str) -> Listing:
    faults: list[str] = []
    try:
        page = _JSON.decode(data)
    except UNDECODABLE as error:
        fault = f"it can't be read: {error}"
        return Listing(kind="json", faults=(fault,), readable=False)
    if not page.meta.api:
        faults.append("it does not say `meta.api-version`")
    files: list[FileLink] = []
    for number, raw in enumerate(page.files):
        try:
            _add(_json_file(_ROW.decode(raw), url, faults), files, faults)
        except UNDECODABLE as error:
            faults.append(f"`files[{number}]` can't be read: {error}")
    return Listing(
        kind="json",
        api=page.meta.api,
        name=page.name,
        files=tuple(files),
        projects=tuple(
            ListedProject(name=name, url=_join(url, f"{name}/", faults))
            for name in (canonicalize_name(project.name) for project in page.projects)
        ),
        versions=page.versions,
        status=page.status.status,
        faults=tuple(faults),
    )


def _json_file(row: _Row, base: str, faults: list[str]) -> FileLink:
    metadata = row.dist_info if row.core is None else row.core
    return FileLink(
        file=row.filename,
        url=_join(base, row.url, faults).partition("#")[0],
        written=row.url,
        hashes=_sound(row.hashes, row.filename, faults),
        requires_python=row.requires_python or "",
        metadata=_sound(metadata, row.filename, faults)
        if isinstance(metadata, dict)
        else ({} if metadata else None),
        yanked=None if row.yanked is False else "" if row.yanked is True else row.yanked,
        size=row.size,
        uploaded=_moment(row.uploaded, row.filename, faults) if row.uploaded else "",
        provenance=_join(base, row.provenance, faults) if row.provenance else "",
    )


def _add(link: FileLink, files: list[FileLink], faults: list[str]) -> None:
    """Add a file, unless its name is invalid."""
    if is_file_name(link.file):
        files.append(link)
    else:
        faults.append(f"`{link.file[:99]}` is not a valid file name")


def _sound(hashes: Mapping[str, str], file: str, faults: list[str]) -> dict[str, str]:
    """Return valid hashes in lower case, and report the others."""
    found = {}
    for kind, digest in hashes.items():
        if _DIGITS.fullmatch(digest):
            found[kind.lower()] = digest.lower()
        else:
            faults.append(f"the {kind[:99]} of `{file[:99]}` is not in hexadecimal digits")
    return found


def _moment(text: str, file: str, faults: list[str]) -> str:
    """Return the upload time of a file, or "" if it is not valid (PEP 700)."""
    with suppress(ValueError):
        datetime.fromisoformat(text)
        if _MOMENT.fullmatch(text):
            return text
    faults.append(f"`{text[:99]}` is not a valid upload time of `{file[:99]}`")
    return ""


def _join(base: str, address: str, faults: list[str]) -> str:
    try:
        return urljoin(base, address)
    except ValueError:
        faults.append(f"`{address[:99]}` is not an address")
        return base


def _path(address: str) -> str:
    """Return the path of an address; the whole text if it can't be parsed."""
    try:
        return urlsplit(address).path
    except ValueError:
        return address


def _last(address: str) -> str:
    """Return the last part of an address, unquoted."""
    return unquote(_path(address).rstrip("/").rpartition("/")[2])
