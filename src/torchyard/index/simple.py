"""The pages of a simple index: PEP 503 as HTML, PEP 691 as JSON, both at API 1.4.

Links are relative, so a channel can be copied, mirrored or put behind another name as it is.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from urllib.parse import quote

import msgspec

from torchyard.index.entry import Entry, State, package_key
from torchyard.index.page import Media, Page

API = "1.4"
_UP = "../../"
_SERIAL = re.compile(rb'(?:"_last-serial":|<!--SERIAL )([0-9]+)')


def project_pages(
    project: str, state: State, view: str, entries: Sequence[Entry]
) -> Iterator[Page]:
    """The pages of a project in a view: its HTML, then its JSON."""
    serial = state.serials.get(view, 0)
    shown = () if state.status == "quarantined" else entries
    folder = f"{view}/{project}"
    yield Page(f"{folder}/index.html", _html(project, state, shown, serial), Media.HTML)
    yield Page(f"{folder}/index.json", _json(project, state, shown, serial), Media.SIMPLE_JSON)


def root_pages(view: str, projects: Iterable[str], serial: int) -> Iterator[Page]:
    """The pages that list the projects of a view."""
    names = sorted(projects)
    links = "".join(f'<a href="{name}/">{name}</a><br>\n' for name in names)
    yield Page(f"{view}/index.html", _document("Simple index", "", links, serial), Media.HTML)
    listing = {
        "meta": {"api-version": API, "_last-serial": serial},
        "projects": [{"name": name} for name in names],
    }
    yield Page(f"{view}/index.json", msgspec.json.encode(listing), Media.SIMPLE_JSON)


def serial_of(page: bytes | None) -> int:
    """The serial that a page tells; 0 for one that tells none, or for no page."""
    found = _SERIAL.search(page or b"")
    return int(found[1]) if found else 0


def _document(title: str, head: str, body: str, serial: int) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="pypi:repository-version" content="{API}">\n{head}<title>{title}</title>\n'
        f"</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n<!--SERIAL {serial}-->\n"
    ).encode()


def _html(project: str, state: State, entries: Sequence[Entry], serial: int) -> bytes:
    head = f'<meta name="pypi:project-status" content="{state.status}">\n'
    if state.status_reason:
        reason = escape(state.status_reason)
        head += f'<meta name="pypi:project-status-reason" content="{reason}">\n'
    body = "".join(map(_link, entries))
    return _document(f"Links for {project}", head, body, serial)


def _link(entry: Entry) -> str:
    url = _UP + quote(package_key(entry.sha256, entry.file))
    more = ""
    if entry.requires_python:
        more += f' data-requires-python="{escape(entry.requires_python)}"'
    if entry.metadata:
        digest = f"sha256={entry.metadata}"
        more += f' data-core-metadata="{digest}" data-dist-info-metadata="{digest}"'
    if entry.yanked is not None:
        more += f' data-yanked="{escape(entry.yanked)}"'
    if entry.provenance:
        more += f' data-provenance="{url}.provenance"'
    return f'<a href="{url}#sha256={entry.sha256}"{more}>{escape(entry.file)}</a><br>\n'


def _json(project: str, state: State, entries: Sequence[Entry], serial: int) -> bytes:
    status: dict[str, str] = {"status": state.status}
    if state.status_reason:
        status["reason"] = state.status_reason
    return msgspec.json.encode(
        {
            "meta": {"api-version": API, "_last-serial": serial},
            "name": project,
            "project-status": status,
            "versions": sorted({entry.version for entry in entries}),
            "files": [_file(entry) for entry in entries],
        }
    )


def _file(entry: Entry) -> dict[str, object]:
    url = _UP + quote(package_key(entry.sha256, entry.file))
    told: dict[str, object] = {
        "filename": entry.file,
        "url": url,
        "hashes": {"sha256": entry.sha256},
        "size": entry.size,
        "upload-time": entry.uploaded,
        "yanked": False if entry.yanked is None else entry.yanked or True,
    }
    if entry.requires_python:
        told["requires-python"] = entry.requires_python
    if entry.metadata:
        told["core-metadata"] = told["dist-info-metadata"] = {"sha256": entry.metadata}
    if entry.provenance:
        told["provenance"] = f"{url}.provenance"
    return told
