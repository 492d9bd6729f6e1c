"""Listings of libtorch zips, as HTML and JSON, and pointers to the newest.

libtorch/PROJECT/            the files of all variants
libtorch/PROJECT/VARIANT/    the files of one variant
    index.html, index.json   every file, the newest version first
    latest.json              the newest version that is not yanked, by build number
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from urllib.parse import quote

import msgspec

from torchyard.index.entry import WHOLE, Entry, State, package_key
from torchyard.index.libtorch.platform import zip_platforms
from torchyard.index.page import Media, Page
from torchyard.index.sort_keys import version_key
from torchyard.model.quantity import show_size
from torchyard.package.libtorch.format import zip_build, zip_without_build

_HEADS = ("File", "Version", "Variant", "Size", "Published", "SHA-256")


def listing_pages(
    project: str, state: State, view: str, entries: Sequence[Entry]
) -> Iterator[Page]:
    """Yield the pages of a project in a view: its pointer, its HTML, then its JSON."""
    folder = f"libtorch/{project}" if view == WHOLE else f"libtorch/{project}/{view}"
    up = "../" * (folder.count("/") + 1)
    title = project if view == WHOLE else f"{project}, {view}"
    shown = [] if state.status == "quarantined" else _newest_first(entries)
    newest = next((_public(entry) for entry in shown if entry.yanked is None), "")
    latest = _last_builds(e for e in shown if e.yanked is None and _public(e) == newest)
    about: dict[str, object] = {
        "version": 1,
        "serial": state.serials.get(view, 0),
        "project": project,
        "status": state.status,
        "latest": newest,
    }
    html = _html(title, state, shown, up, state.serials.get(view, 0))
    yield Page(f"{folder}/latest.json", _json(about, latest, up), Media.JSON)
    yield Page(f"{folder}/index.html", html, Media.HTML)
    yield Page(f"{folder}/index.json", _json(about, shown, up), Media.JSON)


def root_page(projects: Iterable[str]) -> Page:
    """Return the page that lists the projects."""
    links = "".join(f'<li><a href="{name}/">{name}</a></li>\n' for name in sorted(projects))
    return Page("libtorch/index.html", _document("libtorch", f"<ul>\n{links}</ul>\n"), Media.HTML)


def _newest_first(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda e: (version_key(e.version), zip_build(e.file)), reverse=True)


def _last_builds(entries: Iterable[Entry]) -> list[Entry]:
    """Return the files, newest first, without builds replaced by newer ones."""
    found: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        found.setdefault((zip_without_build(entry.file), *zip_platforms(entry)), entry)
    return list(found.values())


def _public(entry: Entry) -> str:
    return entry.version.partition("+")[0]


def _url(entry: Entry, up: str) -> str:
    return up + quote(package_key(entry.sha256, entry.file))


def _json(about: Mapping[str, object], entries: Iterable[Entry], up: str) -> bytes:
    return msgspec.json.encode({**about, "files": [_record(entry, up) for entry in entries]})


def _record(entry: Entry, up: str) -> dict[str, object]:
    record: dict[str, object] = {
        "file": entry.file,
        "version": entry.version,
        "variant": entry.variant,
        "platforms": zip_platforms(entry),
        "url": _url(entry, up),
        "sha256": entry.sha256,
        "size": entry.size,
        "uploaded": entry.uploaded,
    }
    if entry.yanked is not None:
        record["yanked"] = entry.yanked
    if entry.overrides:
        record["overrides"] = dict(entry.overrides)
    return record


def _document(title: str, body: str) -> bytes:
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"{body}</body>\n</html>\n"
    ).encode()


def _html(title: str, state: State, entries: Sequence[Entry], up: str, serial: int) -> bytes:
    about = ""
    if state.status != "active":
        reason = f": {escape(state.status_reason)}" if state.status_reason else ""
        about = f"<p>This project is {state.status}{reason}.</p>\n"
    heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
    rows = "".join(_row(entry, up) for entry in entries)
    table = (
        f"<table>\n<caption>Files, the newest version first</caption>\n"
        f"<thead>\n<tr>{heads}</tr>\n</thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    )
    return _document(title, f"{about}{table}<!--SERIAL {serial}-->\n")


def _row(entry: Entry, up: str) -> str:
    link = f'<a href="{_url(entry, up)}">{escape(entry.file)}</a>'
    if entry.yanked is not None:
        link += f" (yanked{': ' if entry.yanked else ''}{escape(entry.yanked)})"
    for gate, reason in entry.overrides:
        link += f" (without {gate}: {escape(reason)})"
    published = f'<time datetime="{entry.uploaded}">{entry.uploaded[:10]}</time>'
    cells = (
        escape(entry.version),
        escape(entry.variant),
        show_size(entry.size),
        published,
        f"<code>{entry.sha256}</code>",
    )
    data = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{link}</th>{data}</tr>\n'
