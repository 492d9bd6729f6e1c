"""The pages of a simple index: PEP 503 as HTML, PEP 691 as JSON, both at API 1.4.

Links are relative, so that a channel can be copied, mirrored or served under another name.
That includes links to provenance, although PEP 740 asks for absolute ones.

The old name of `core-metadata` (PEP 714) is in the HTML only: some versions of pip that are still
in use read it there, but fail on any JSON page that has it.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from string import ascii_letters, digits
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from torchyard.index.entry import Entry, State, package_key
from torchyard.index.page import Media, Page
from torchyard.model.values import Value

API = "1.4"
_UP = "../../"
_SERIAL = re.compile(rb'(?:"(?:_last-)?serial":|<!--SERIAL )([0-9]+)')
_PLAIN = f"{ascii_letters}{digits}-._+".encode()
"""Characters of nearly all file names; of these, only the plus is special in a URL."""

_escape = lru_cache(escape)
"""Cached, as many files share a few values."""

_encode = msgspec.json.Encoder().encode


class _File(Value, kw_only=True, rename="kebab"):
    """A file in the JSON page, without empty fields."""

    filename: str
    url: str
    hashes: dict[str, str]
    size: int
    upload_time: str
    requires_python: str = ""
    core_metadata: dict[str, str] = {}
    provenance: str = ""
    yanked: str | bool = False
    overrides: dict[str, str] = msgspec.field(name="_overrides", default={})


class _Row(NamedTuple):
    """The rows of a file in the HTML and JSON pages."""

    html: str
    json: msgspec.Raw


class ProjectIndex:
    """The pages of a project. Each row is generated once for all views."""

    def __init__(self, project: str, state: State) -> None:
        self._project = project
        self._state = state
        self._made: dict[int, _Row] = {}

    def pages(self, view: str, entries: Iterable[Entry]) -> Iterator[Page]:
        """Yield the pages of a view, which shows these entries: HTML, then JSON.

        A project in quarantine has no files, but its versions are still listed.
        """
        entries = list(entries)
        versions = sorted({entry.version for entry in entries})
        rows = [] if self._state.status == "quarantined" else self._rows(entries)
        serial = self._state.serials.get(view, 0)
        folder = f"{view}/{self._project}"
        yield Page(f"{folder}/index.html", self._html(rows, serial), Media.HTML)
        yield Page(f"{folder}/index.json", self._json(rows, versions, serial), Media.SIMPLE_JSON)

    def _rows(self, entries: list[Entry]) -> list[_Row]:
        made = self._made
        for entry in entries:
            if id(entry) not in made:
                made[id(entry)] = _row(entry)
        return [made[id(entry)] for entry in entries]

    def _html(self, rows: list[_Row], serial: int) -> bytes:
        state = self._state
        head = f'<meta name="pypi:project-status" content="{state.status}">\n'
        if state.status_reason:
            reason = escape(state.status_reason)
            head += f'<meta name="pypi:project-status-reason" content="{reason}">\n'
        links = [row.html for row in rows]
        return _document(f"Links for {self._project}", head, links, serial)

    def _json(self, rows: list[_Row], versions: list[str], serial: int) -> bytes:
        status: dict[str, str] = {"status": self._state.status}
        if self._state.status_reason:
            status["reason"] = self._state.status_reason
        return _encode(
            {
                "meta": {"api-version": API, "_last-serial": serial},
                "name": self._project,
                "project-status": status,
                "versions": versions,
                "files": [row.json for row in rows],
            }
        )


def root_pages(view: str, projects: Iterable[str], serial: int) -> Iterator[Page]:
    """Yield the pages that list the projects of a view."""
    names = sorted(projects)
    links = [f'<a href="{name}/">{name}</a><br>\n' for name in names]
    yield Page(f"{view}/index.html", _document("Simple index", "", links, serial), Media.HTML)
    listing = {
        "meta": {"api-version": API, "_last-serial": serial},
        "projects": [{"name": name} for name in names],
    }
    yield Page(f"{view}/index.json", _encode(listing), Media.SIMPLE_JSON)


def links_page(view: str, entries: Iterable[Entry], serial: int) -> Page:
    """Return a page with the files of several projects, for `--find-links`."""
    links = [_row(entry, up="").html for entry in entries]
    path = links_path(view)
    title = f"Links for {path.removesuffix('.html')}"
    return Page(path, _document(title, "", links, serial), Media.HTML)


def links_path(view: str) -> str:
    """Return the path of a view's page of links, such as `torch-2.13.0+cu130.html`."""
    torch, plus, variant = view.partition("+")
    return f"{torch}.0{plus}{variant}.html"


def serial_of(page: bytes | None) -> int:
    """Return the serial of a page; 0 if the page or its serial is missing."""
    found = _SERIAL.search(page or b"")
    return int(found[1]) if found else 0


def _document(title: str, head: str, links: list[str], serial: int) -> bytes:
    start = (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="pypi:repository-version" content="{API}">\n{head}<title>{title}</title>\n'
        f"</head>\n<body>\n<h1>{title}</h1>\n"
    )
    end = f"</body>\n</html>\n<!--SERIAL {serial}-->\n"
    return "".join((start, *links, end)).encode()


def _exceptions(entry: Entry) -> str:
    """Return the gates that were overridden for a file, and why."""
    return "".join(f" (without {gate}: {reason})" for gate, reason in entry.overrides)


def _row(entry: Entry, up: str = _UP) -> _Row:
    file, digest, metadata, yanked = entry.file, entry.sha256, entry.metadata, entry.yanked
    if file.encode().translate(None, _PLAIN):
        text, name = escape(file), quote(file, safe="")
    else:
        text, name = file, file.replace("+", "%2B")
    url = up + package_key(digest, name)
    more = ""
    if entry.requires_python:
        more = f' data-requires-python="{_escape(entry.requires_python)}"'
    if metadata:
        more += (
            f' data-core-metadata="sha256={metadata}" data-dist-info-metadata="sha256={metadata}"'
        )
    if yanked is not None:
        more += f' data-yanked="{_escape(yanked)}"'
    if entry.provenance:
        more += f' data-provenance="{url}.provenance"'
    listed = _File(
        filename=file,
        url=url,
        hashes={"sha256": digest},
        size=entry.size,
        upload_time=entry.uploaded,
        requires_python=entry.requires_python,
        core_metadata={"sha256": metadata} if metadata else {},
        provenance=f"{url}.provenance" if entry.provenance else "",
        yanked=False if yanked is None else yanked or True,
        overrides=dict(entry.overrides),
    )
    html = f'<a href="{url}#sha256={digest}"{more}>{text}</a>{escape(_exceptions(entry))}<br>\n'
    return _Row(html, msgspec.Raw(_encode(listed)))
